use super::super::BLOCK;
use super::super::mask::MaskRow;
use super::super::score::ScoreRow;
use super::Blocks;
use std::ops::Range;

fn row(keys: Range<usize>, kept: usize) -> ScoreRow {
    ScoreRow { keys, kept, position: 0, slope: None, mask: MaskRow::NONE }
}

/// Every key that a row sees is in exactly one block, and every block has such a key at both ends.
#[test]
fn blocks_have_the_keys_that_rows_see() {
    let ends = [0, 1, 15, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5, 9 * BLOCK];
    for start in ends {
        for end in ends.into_iter().filter(|end| *end >= start) {
            for kept in ends.into_iter().filter(|kept| *kept <= start) {
                let rows = [row(start..end, kept), row(end..end, kept / 2)];
                let seen = |key: usize| (start..end).contains(&key) || key < kept;
                let (mut covered, mut count) = (0, 0);
                let expected = Blocks::of(&rows).left();
                for (first, keys) in Blocks::of(&rows) {
                    assert!(first % BLOCK == 0 && keys.start >= first && keys.end <= first + BLOCK);
                    assert!(
                        seen(keys.start) && seen(keys.end - 1),
                        "{start} {end} {kept} {keys:?}"
                    );
                    covered += keys.filter(|key| seen(*key)).count();
                    count += 1;
                }
                assert_eq!(covered, end - start + kept, "{start} {end} {kept}");
                assert_eq!(count, expected, "{start} {end} {kept}");
            }
        }
    }
}
