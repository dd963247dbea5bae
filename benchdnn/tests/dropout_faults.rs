//! Known mistakes of dropout's generator. The oracle distinguishes each from the right mask; `elementwise_faults.rs` has
//! those of a library.

use benchdnn::oracle::dropout::Draw;

const RIGHT: Draw = Draw { probability: 0.5, seed: 12_345_678, offset: 1_238_976 };

/// How many of 1000 elements differ.
fn differences(other: impl Fn(usize) -> bool) -> usize {
    (0..1000).filter(|place| RIGHT.stays(*place) != other(*place)).count()
}

#[test]
fn another_seed_offset_probability_or_place_shows() {
    let seed = Draw { seed: RIGHT.seed + 1, ..RIGHT };
    let offset = Draw { offset: 0, ..RIGHT };
    let probability = Draw { probability: 0.6, ..RIGHT };
    assert_eq!(differences(|place| RIGHT.stays(place)), 0);
    for wrong in [seed, offset, probability] {
        assert!(differences(|place| wrong.stays(place)) > 60, "{wrong:?}");
    }
    // Indices of the transposed order, of 25 x 40.
    assert!(differences(|place| RIGHT.stays(place % 40 * 25 + place / 40)) > 400);
}

#[test]
fn a_seed_of_64_bits_is_used_whole_with_an_offset_alone() {
    let high = Draw { seed: RIGHT.seed + (1 << 40), ..RIGHT };
    assert!(differences(|place| high.stays(place)) > 400);
    let [low, high] = [0, 1 << 40].map(|more| Draw { offset: 0, seed: 77 + more, ..RIGHT });
    assert!((0..1000).all(|place| low.stays(place) == high.stays(place)));
}
