//! Grouped-query attention: a prompt at once, then token by token from a cache. A token has the same bits either way.
//! `cargo run --release -p norm-rs --example attention`

use norm_rs::sdpa::{Causal, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream, Tag};

const HEADS: usize = 8;
const GROUPS: usize = 2; // Four heads of queries share one of keys and values.
const SIZE: usize = 64;
const PROMPT: usize = 48;
const TOKENS: usize = 64; // The prompt and what is decoded.
const CAPACITY: usize = 128;

/// The result of a projection: heads x tokens x elements.
fn projection(heads: usize, seed: usize) -> Vec<f32> {
    let number = |i: usize| ((i * seed + i / 7) % 1013) as f32 / 500.0 - 1.0;
    (0..heads * TOKENS * SIZE).map(number).collect()
}

/// The elements of a range of tokens: heads x tokens x elements.
fn tokens(all: &[f32], from: usize, to: usize) -> Vec<f32> {
    all.chunks(TOKENS * SIZE).flat_map(|head| &head[from * SIZE..to * SIZE]).copied().collect()
}

/// Puts tokens into a cache of heads x capacity x elements.
fn append(cache: &mut Memory<'_>, new: &[f32], at: usize) -> Result<()> {
    let count = new.len() / GROUPS / SIZE;
    let cache = cache.as_mut_slice::<f32>()?.chunks_mut(CAPACITY * SIZE);
    for (head, new) in cache.zip(new.chunks(count * SIZE)) {
        head[at * SIZE..][..new.len()].copy_from_slice(new);
    }
    Ok(())
}

#[cfg_attr(test, test)]
fn main() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let (q, k, v) = (projection(HEADS, 37), projection(GROUPS, 53), projection(GROUPS, 71));

    // The cache is heads x capacity x elements. Attention expects keys with the last two dimensions swapped.
    let key = MemoryDesc::with_tag(&[1, GROUPS, SIZE, CAPACITY], DataType::F32, Tag::Abdc)?;
    let value = MemoryDesc::dense(&[1, GROUPS, CAPACITY, SIZE], DataType::F32)?;
    let (mut keys, mut values) = (Memory::new(&engine, &key)?, Memory::new(&engine, &value)?);
    let count = MemoryDesc::dense(&[1], DataType::S32)?;

    // A primitive for the number of queries in a step; each execution gets the number of filled tokens.
    let attention = |queries: usize| {
        let query = MemoryDesc::dense(&[1, HEADS, queries, SIZE], DataType::F32)?;
        let builder = Forward::inference(&engine, &query, &key, &value);
        builder.causal(Causal::BottomRight).key_lengths().build().map(|built| (query, built))
    };
    let step = |(query, attention): &(MemoryDesc, Forward),
                keys: &mut Memory<'_>,
                values: &mut Memory<'_>,
                (from, to): (usize, usize)|
     -> Result<Vec<f32>> {
        append(keys, &tokens(&k, from, to), from)?;
        append(values, &tokens(&v, from, to), from)?;
        let queries = tokens(&q, from, to);
        let queries = Memory::from_slice(&engine, query, &queries)?;
        let lengths = [to as i32];
        let lengths = Memory::from_slice(&engine, &count, &lengths)?;
        let mut dst = Memory::new(&engine, query)?;
        let args = ForwardArgs::new(&queries, keys, values, &mut dst).key_lengths(&lengths);
        attention.execute(&stream, args)?;
        Ok(dst.as_slice::<f32>()?.to_vec())
    };

    // The prompt first, then one token at a time.
    let prompt = step(&attention(PROMPT)?, &mut keys, &mut values, (0, PROMPT))?;
    println!("prompt of {PROMPT} tokens: {:.4?} ...", &prompt[..4]);
    let one = attention(1)?;
    let mut decoded = Vec::new();
    for token in PROMPT..TOKENS {
        decoded.push(step(&one, &mut keys, &mut values, (token, token + 1))?);
    }
    println!("token {PROMPT}: {:.4?} ...", &decoded[0][..4]);

    // All tokens at once.
    let together = step(&attention(TOKENS)?, &mut keys, &mut values, (0, TOKENS))?;
    let bits = |list: &[f32]| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&prompt), bits(&tokens(&together, 0, PROMPT)));
    for (token, decoded) in (PROMPT..TOKENS).zip(&decoded) {
        assert_eq!(bits(decoded), bits(&tokens(&together, token, token + 1)), "token {token}");
    }
    println!("the same bits at once, as a prompt and token by token");
    Ok(())
}
