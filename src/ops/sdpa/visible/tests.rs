use super::*;

fn masking(kind: WindowKind, size: i64) -> Masking {
    let before = if kind == WindowKind::WithSelf { size - 1 } else { size };
    let window = Some(Window { before, kind, size, first_keys: 0 });
    Masking { causal: true, bottom_right: false, window }
}

fn counts(masking: Masking, queries: usize, keys: usize) -> Vec<usize> {
    (0..queries).map(|query| masking.keys(query, (queries, keys)).len()).collect()
}

#[test]
fn windows_count_as_they_say() {
    assert_eq!(counts(masking(WindowKind::WithSelf, 1), 5, 5), [1, 1, 1, 1, 1]);
    assert_eq!(counts(masking(WindowKind::BeforeSelf, 0), 5, 5), [1, 1, 1, 1, 1]);
    assert_eq!(counts(masking(WindowKind::WithSelf, 3), 5, 5), [1, 2, 3, 3, 3]);
    assert_eq!(counts(masking(WindowKind::BeforeSelf, 3), 5, 5), [1, 2, 3, 4, 4]);
    assert_eq!(counts(masking(WindowKind::BeforeSelf, 5), 5, 5), [1, 2, 3, 4, 5]);
}

#[test]
fn first_keys_are_seen_besides_a_window() {
    let window = Window { before: 1, kind: WindowKind::WithSelf, size: 2, first_keys: 3 };
    let masking = Masking { causal: true, bottom_right: false, window: Some(window) };
    let seen = |query| (0..8).filter(|key| masking.seen(query, (8, 8))(*key)).collect::<Vec<_>>();
    assert_eq!(seen(1), [0, 1]);
    assert_eq!(seen(4), [0, 1, 2, 3, 4]);
    assert_eq!(seen(7), [0, 1, 2, 6, 7]);
    // Even if the window is beyond the keys.
    assert_eq!((0..4).filter(|key| masking.seen(7, (8, 4))(*key)).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_last_query_sees_the_last_key() {
    let masking = Masking { causal: true, bottom_right: true, window: None };
    assert_eq!(counts(masking, 3, 5), [3, 4, 5]);
    assert_eq!(counts(masking, 5, 3), [0, 0, 1, 2, 3]);
    assert_eq!(masking.keys(0, (5, 3)), 0..0);
}

/// The visible pairs of a causal mask, divided by those of a window of 4096 keys.
#[test]
fn causal_pairs_of_long_sequences() {
    let window = masking(WindowKind::WithSelf, 4096);
    let causal = Masking { window: None, ..window };
    for (length, ratio) in [(8192, 1.33), (16384, 2.29), (32768, 4.27)] {
        let pairs = |masking: Masking| counts(masking, length, length).iter().sum::<usize>() as f64;
        assert!((pairs(causal) / pairs(window) - ratio).abs() < 0.005, "{length}");
    }
}
