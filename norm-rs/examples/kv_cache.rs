//! Decoding with a KV cache: a prompt, a fork, two continuations, and a draft that is partly rejected.
//! `cargo run --release -p norm-rs --example kv_cache`

use norm_rs::kv_cache::{KvCache, Rows, Sequence};
use norm_rs::sdpa::{Causal, Forward, ForwardArgs};
use norm_rs::{DataType, Engine, Memory, MemoryDesc, Result, Stream};

const LAYERS: usize = 2;
const HEADS: usize = 8;
const GROUPS: usize = 2; // Four heads of queries share one of keys and values.
const SIZE: usize = 64;
const PROMPT: usize = 40;
const CAPACITY: usize = 128;

/// A made-up projection of tokens: heads x tokens x elements.
fn projection(heads: usize, tokens: &[usize], seed: usize) -> Vec<f32> {
    let mut list = Vec::new();
    for head in 0..heads {
        for token in tokens {
            let number =
                |i: usize| ((i * seed + head * 7 + token * 31) % 1013) as f32 / 500.0 - 1.0;
            list.extend((0..SIZE).map(number));
        }
    }
    list
}

struct Model {
    engine: Engine,
    stream: Stream<'static>,
    cache: KvCache,
}

impl Model {
    /// Runs all layers of a step of one sequence. Returns the last layer's result for the last token.
    fn step(&mut self, sequence: Sequence, tokens: &[usize]) -> Result<Vec<f32>> {
        let dims = |heads| [1, heads, tokens.len(), SIZE];
        let rows = MemoryDesc::dense(&dims(GROUPS), DataType::F32)?;
        let query = MemoryDesc::dense(&dims(HEADS), DataType::F32)?;
        let table = self.cache.page_table_desc(1)?;
        let (key, value) = (self.cache.key_desc(), self.cache.value_desc());
        // A program would reuse this primitive for all layers and all steps with the same number of tokens.
        let attention = Forward::inference(&self.engine, &query, key, value)
            .causal(Causal::BottomRight)
            .key_lengths()
            .page_table(&table)
            .build()?;

        self.cache.extend(&[(sequence, tokens.len())], Rows::Packed)?;
        let mut dst = Memory::new(&self.engine, &query)?;
        for layer in 0..LAYERS {
            let [q, k, v] = [(HEADS, 37), (GROUPS, 53), (GROUPS, 71)]
                .map(|(heads, seed)| projection(heads, tokens, seed + layer));
            let keys = Memory::from_slice(&self.engine, &rows, &k)?;
            let values = Memory::from_slice(&self.engine, &rows, &v)?;
            self.cache.write(&self.stream, layer, &keys, &values)?;
            let queries = Memory::from_slice(&self.engine, &query, &q)?;
            let of_layer = self.cache.sdpa_args(layer, &[sequence])?;
            let args = ForwardArgs::cached(&queries, of_layer, &mut dst)?;
            attention.execute(&self.stream, args)?;
        }
        let heads = dst.as_slice::<f32>()?.chunks(tokens.len() * SIZE);
        Ok(heads.flat_map(|head| &head[(tokens.len() - 1) * SIZE..]).copied().collect())
    }
}

#[cfg_attr(test, test)]
fn main() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    // Up to 4 sequences of 128 tokens, in pages of 16.
    let builder = KvCache::paged(&engine, DataType::F32, 16).layers(LAYERS).heads(GROUPS);
    let cache = builder.key_size(SIZE).sequences(4).tokens(CAPACITY).build()?;
    let mut model = Model { engine, stream, cache };

    let prompt: Vec<usize> = (0..PROMPT).collect();
    let first = model.cache.new_sequence()?;
    let result = model.step(first, &prompt)?;
    println!("prompt of {PROMPT} tokens: {:.4?} ...", &result[..3]);

    // Two continuations share the prompt. The first to write copies the page that is not full.
    let second = model.cache.fork(first)?;
    let stats = model.cache.stats()?;
    println!("after a fork: {} pages, {} of them shared", stats.used_pages, stats.shared_pages);
    assert_eq!((stats.used_pages, stats.shared_pages), (3, 3));
    for token in 0..4 {
        let of_first = model.step(first, &[100 + token])?;
        let of_second = model.step(second, &[200 + token])?;
        println!("token {token}: {:.4?} ..., {:.4?} ...", &of_first[..2], &of_second[..2]);
        assert_ne!(of_first, of_second);
    }
    let stats = model.cache.stats()?;
    println!("{} pages, {} copied", stats.used_pages, stats.copied_pages);
    assert_eq!((stats.used_pages, stats.copied_pages), (4, 1));

    // Draft three tokens, and accept the first.
    let known = model.cache.length(first)?;
    model.step(first, &[300, 301, 302])?;
    model.cache.truncate(first, known + 1)?;
    let result = model.step(first, &[400])?;

    // The same tokens without a fork or a draft have the same bits.
    let mut all = prompt;
    all.extend([100, 101, 102, 103, 300, 400]);
    let alone = model.cache.new_sequence()?;
    assert_eq!(model.step(alone, &all)?, result);
    println!("the same bits as without a fork and a draft");

    model.cache.drop_sequence(first)?;
    model.cache.drop_sequence(second)?;
    model.cache.drop_sequence(alone)?;
    assert_eq!(model.cache.stats()?.used_pages, 0);
    Ok(())
}
