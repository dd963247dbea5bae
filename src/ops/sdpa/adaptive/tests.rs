use super::*;

const USUAL: WindowState = WindowState {
    strategy: WindowStrategy::Length,
    length: 0,
    min: 512,
    max: 4096,
    measured: f64::NAN,
    vocabulary: 50_000.0,
    previous: 0,
    smoothing: 1.0,
    max_step: 0,
};

fn window(state: WindowState) -> i64 {
    adaptive_window(&state).unwrap()
}

#[test]
fn half_of_the_length() {
    let table = [(100, 512), (1024, 512), (1026, 513), (4096, 2048), (8192, 4096), (1 << 40, 4096)];
    for (length, expected) in table {
        assert_eq!(window(WindowState { length, ..USUAL }), expected, "{length}");
        let fallback = WindowState { length, strategy: WindowStrategy::Entropy, ..USUAL };
        assert_eq!(window(fallback), expected, "{length}");
    }
}

#[test]
fn entropy_over_4() {
    let strategy = WindowStrategy::EntropyOver4;
    for (measured, expected) in
        [(0.0, 512), (1.0, 1408), (2.0, 2304), (3.0, 3200), (4.0, 4096), (1e9, 4096)]
    {
        assert_eq!(window(WindowState { strategy, measured, ..USUAL }), expected, "{measured}");
    }
}

#[test]
fn entropy_of_even_weights_is_the_whole_window() {
    let strategy = WindowStrategy::Entropy;
    let state = WindowState { strategy, previous: 1024, ..USUAL };
    assert_eq!(window(WindowState { measured: 1024f64.ln(), ..state }), 4096);
    assert_eq!(window(WindowState { measured: 0.0, ..state }), 512);
    assert_eq!(window(WindowState { measured: 1024f64.ln() / 2.0, ..state }), 2304);
}

#[test]
fn perplexity_is_relative_to_the_vocabulary() {
    let state = WindowState { strategy: WindowStrategy::Perplexity, ..USUAL };
    assert_eq!(window(WindowState { measured: 1.0, ..state }), 512);
    assert_eq!(window(WindowState { measured: 50_000.0, ..state }), 4096);
    assert_eq!(window(WindowState { measured: 50_000f64.sqrt(), ..state }), 2304);
}

#[test]
fn windows_change_smoothly() {
    let state = WindowState { length: 8192, previous: 1000, ..USUAL };
    assert_eq!(window(WindowState { smoothing: 0.25, ..state }), 1774);
    assert_eq!(window(WindowState { max_step: 64, ..state }), 1064);
    assert_eq!(window(WindowState { length: 0, max_step: 64, ..state }), 936);
    assert_eq!(window(WindowState { strategy: WindowStrategy::Fixed, ..state }), 4096);
}

#[test]
fn steps_begin_within_the_bounds() {
    let large = WindowState { previous: 10_000, max_step: 64, ..USUAL };
    assert_eq!(window(large), 4032);
    assert_eq!(window(WindowState { length: 8192, ..large }), 4096);
    assert_eq!(window(WindowState { smoothing: 0.25, max_step: 0, ..large }), 3200);
    let small = WindowState { previous: 100, max_step: 64, length: 8192, ..USUAL };
    assert_eq!(window(small), 576);
    // Entropies remain relative to the window that they were measured with.
    let strategy = WindowStrategy::Entropy;
    let measured = 10_000f64.ln() / 2.0;
    assert_eq!(window(WindowState { strategy, measured, max_step: 0, ..large }), 2304);
}

#[test]
fn the_largest_window_is_not_rounded_up() {
    let (min, max) = (1, i64::MAX / 4);
    let strategy = WindowStrategy::EntropyOver4;
    assert_eq!(window(WindowState { strategy, min, max, measured: 4.0, ..USUAL }), max);
}

#[test]
fn wrong_parameters_are_named() {
    let perplexity = WindowState { strategy: WindowStrategy::Perplexity, measured: 2.0, ..USUAL };
    let entropy = WindowState { strategy: WindowStrategy::Entropy, ..USUAL };
    for (state, name) in [
        (WindowState { length: -1, ..USUAL }, "length"),
        (WindowState { min: 0, ..USUAL }, "min_window"),
        (WindowState { max: 511, ..USUAL }, "max_window"),
        (WindowState { previous: -1, ..USUAL }, "previous"),
        (WindowState { smoothing: 0.0, ..USUAL }, "smoothing"),
        (WindowState { smoothing: 1.5, ..USUAL }, "smoothing"),
        (WindowState { smoothing: f64::NAN, ..USUAL }, "smoothing"),
        (WindowState { max_step: -1, ..USUAL }, "max_step"),
        (WindowState { measured: -0.5, ..entropy }, "measured"),
        (WindowState { measured: 0.5, ..perplexity }, "measured"),
        (WindowState { vocabulary: 1.0, ..perplexity }, "vocabulary"),
    ] {
        let error = adaptive_window(&state).unwrap_err();
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}
