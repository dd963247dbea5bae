//! The KV cache: the same bits as plain tensors for every kind of cache and step; forks, full pools, rings, errors.

use norm_rs::kv_cache::{KvCache, KvCacheBuilder, Rows, Sequence};
use norm_rs::primitive::Arg;
use norm_rs::rope::{self, Pairing};
use norm_rs::sdpa::{Causal, Forward, ForwardArgs, Heads, Options, Window, attention};
use norm_rs::{DataType, Engine, Error, ErrorKind, Memory, MemoryDesc, Result, Stream, bf16};

use crate::data::{Number, bits, memory, numbers};

const HEADS: usize = 4;
const GROUPS: usize = 2;
const SIZE: usize = 8;
const VALUE: usize = 6;
const TOKENS: usize = 300;

/// A sequence: heads x tokens x elements.
struct Story<T> {
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    /// The result of attention on plain tensors.
    dst: Vec<T>,
}

/// The elements of a range of tokens of a list of heads x tokens x elements.
fn part<T: Copy>(list: &[T], size: usize, (from, to): (usize, usize)) -> Vec<T> {
    let heads = list.chunks(TOKENS * size);
    heads.flat_map(|head| &head[from * size..to * size]).copied().collect()
}

fn options(window: Window, first_keys: usize) -> Options<'static> {
    Options { causal: Causal::BottomRight, window, first_keys, ..Options::default() }
}

impl<T: Number + norm_rs::Parameter> Story<T> {
    fn new(seed: u64, options: &Options<'_>) -> Result<Self> {
        let of = |seed, heads, size| numbers::<T>(seed, heads * TOKENS * size, -1.0, 1.0);
        let (q, k) = (of(seed, HEADS, SIZE), of(seed + 1, GROUPS, SIZE));
        let v = of(seed + 2, GROUPS, VALUE);
        let mut dst = vec![T::default(); HEADS * TOKENS * VALUE];
        attention(
            Heads::new(&q[..], [1, HEADS, TOKENS, SIZE]),
            Heads::new(&k[..], [1, GROUPS, TOKENS, SIZE]),
            Heads::new(&v[..], [1, GROUPS, TOKENS, VALUE]),
            options,
            Heads::new(&mut dst[..], [1, HEADS, TOKENS, VALUE]),
        )?;
        Ok(Self { q, k, v, dst })
    }

    /// Writes a range of tokens, and checks attention of their queries.
    fn step(
        &self,
        cache: &mut KvCache,
        (layer, sequence): (usize, Sequence),
        range: (usize, usize),
        options: &Options<'_>,
    ) -> Result<()> {
        let count = range.1 - range.0;
        let (k, v) = (part(&self.k, SIZE, range), part(&self.v, VALUE, range));
        let (of_k, of_v) = ([1, GROUPS, count, SIZE], [1, GROUPS, count, VALUE]);
        cache.write_slices(layer, Heads::new(&k[..], of_k), Heads::new(&v[..], of_v))?;
        let q = part(&self.q, SIZE, range);
        let mut dst = vec![T::default(); HEADS * count * VALUE];
        let to = Heads::new(&mut dst[..], [1, HEADS, count, VALUE]);
        let q = Heads::new(&q[..], [1, HEADS, count, SIZE]);
        cache.attention(layer, &[sequence], q, options, to)?;
        assert_eq!(bits(&dst), bits(&part(&self.dst, VALUE, range)), "tokens {range:?}");
        Ok(())
    }
}

fn sized(builder: KvCacheBuilder<'_>) -> Result<KvCache> {
    let builder = builder.heads(GROUPS).key_size(SIZE).value_size(VALUE).layers(2).sequences(2);
    builder.tokens(TOKENS).step_tokens(64).build()
}

/// In chunks of different sizes, in both layers, then truncated and extended again.
fn follows<T: Number + norm_rs::Parameter>() -> Result<()> {
    let (engine, kind) = (Engine::cpu()?, T::DATA_TYPE);
    let window = Window::BeforeSelf(39);
    let (plain, windowed) = (options(Window::None, 0), options(window, 3));
    let stories = [Story::<T>::new(1, &plain)?, Story::new(4, &windowed)?];
    for (builder, ring) in [
        (KvCache::contiguous(&engine, kind), false),
        (KvCache::paged(&engine, kind, 16), false),
        (KvCache::ring(&engine, kind, 7, window).first_tokens(3), true),
    ] {
        let (story, options) = (&stories[usize::from(ring)], if ring { windowed } else { plain });
        let mut cache = sized(builder)?;
        let sequence = cache.new_sequence()?;
        let mut known = 0;
        for count in [1, 7, 64, 1, 64, 5] {
            cache.extend(&[(sequence, count)], Rows::Packed)?;
            for layer in [1, 0] {
                story.step(&mut cache, (layer, sequence), (known, known + count), &options)?;
            }
            known += count;
        }
        assert_eq!(cache.length(sequence)?, known);
        cache.truncate(sequence, known - 5)?;
        cache.extend(&[(sequence, 9)], Rows::Padded(9))?;
        story.step(&mut cache, (0, sequence), (known - 5, known + 4), &options)?;
        let stats = cache.stats()?;
        assert_eq!((stats.copied_pages, stats.shared_pages, stats.sequences), (0, 0, 1));
        if ring {
            // 146 tokens would need 21 pages of 7. A ring keeps those of the last window and step, and of first tokens.
            assert!(stats.used_pages < 146usize.div_ceil(7), "{stats:?}");
        }
    }
    Ok(())
}

#[test]
fn the_bits_of_plain_tensors() -> Result<()> {
    follows::<f32>()?;
    follows::<bf16>()
}

/// One primitive for two sequences of different lengths, and for one next to an empty place.
#[test]
fn one_primitive_serves_every_step() -> Result<()> {
    let (engine, plain) = (Engine::cpu()?, options(Window::None, 0));
    let stream = Stream::new(&engine)?;
    let stories = [Story::<f32>::new(1, &plain)?, Story::new(4, &plain)?];
    let builder = KvCache::paged(&engine, DataType::F32, 16).heads(GROUPS).key_size(SIZE);
    let mut cache = builder.value_size(VALUE).sequences(5).tokens(TOKENS).build()?;
    let query = MemoryDesc::dense(&[2, HEADS, 1, SIZE], DataType::F32)?;
    let result = MemoryDesc::dense(&[2, HEADS, 1, VALUE], DataType::F32)?;
    let table = cache.page_table_desc(2)?;
    let builder = Forward::inference(&engine, &query, cache.key_desc(), cache.value_desc());
    let builder = builder.dst(&result).causal(Causal::BottomRight).key_lengths();
    let primitive = builder.page_table(&table).build()?;

    let both = [cache.new_sequence()?, cache.new_sequence()?];
    cache.extend(&[(both[1], 20)], Rows::Packed)?;
    stories[1].step(&mut cache, (0, both[1]), (0, 20), &plain)?;
    let mut dst = Memory::new(&engine, &result)?;
    for token in 0..18 {
        let ranges = [(token, token + 1), (token + 20, token + 21)];
        let together = |of: fn(&Story<f32>) -> &Vec<f32>, size| -> Vec<f32> {
            let rows = stories.iter().zip(ranges);
            rows.flat_map(|(story, range)| part(of(story), size, range)).collect()
        };
        let (k, v) = (together(|s| &s.k, SIZE), together(|s| &s.v, VALUE));
        cache.extend(&both.map(|sequence| (sequence, 1)), Rows::Padded(1))?;
        let k = memory(&engine, &[2, GROUPS, 1, SIZE], &k);
        cache.write_keys(&stream, 0, &k)?;
        cache.write_values(&stream, 0, &memory(&engine, &[2, GROUPS, 1, VALUE], &v))?;
        let q = memory(&engine, &[2, HEADS, 1, SIZE], &together(|s| &s.q, SIZE));
        let layer = cache.sdpa_args(0, &both)?;
        primitive.execute(&stream, ForwardArgs::cached(&q, layer, &mut dst)?)?;
        let expected = together(|s| &s.dst, VALUE);
        assert_eq!(bits(dst.as_slice::<f32>()?), bits(&expected), "token {token}");

        // An empty place, named or omitted, gives zeros; the other sequence keeps its place.
        for list in [&[both[0]][..], &[both[0], Sequence::NONE]] {
            let layer = cache.sdpa_args(0, list)?;
            primitive.with(ForwardArgs::cached(&q, layer, &mut dst)?).map(|call| {
                stream.execute_many(&[call]).unwrap();
            })?;
            let (first, second) = dst.as_slice::<f32>()?.split_at(HEADS * VALUE);
            assert_eq!(bits(first), bits(&expected[..HEADS * VALUE]));
            assert!(second.iter().all(|x| *x == 0.0));
        }
    }
    Ok(())
}

#[test]
fn a_fork_copies_one_page() -> Result<()> {
    let (engine, plain) = (Engine::cpu()?, options(Window::None, 0));
    let story = Story::<f32>::new(1, &plain)?;
    let mut cache = sized(KvCache::paged(&engine, DataType::F32, 16))?;
    let first = cache.new_sequence()?;
    cache.extend(&[(first, 40)], Rows::Packed)?;
    story.step(&mut cache, (0, first), (0, 40), &plain)?;
    let second = cache.fork(first)?;
    assert_ne!(first, second);
    let stats = cache.stats()?;
    assert_eq!((stats.used_pages, stats.shared_pages, stats.copied_pages), (3, 3, 0));
    for (sequence, copied) in [(second, 1), (first, 1), (second, 1)] {
        let known = cache.length(sequence)?;
        cache.extend(&[(sequence, 3)], Rows::Packed)?;
        story.step(&mut cache, (0, sequence), (known, known + 3), &plain)?;
        assert_eq!(cache.stats()?.copied_pages, copied);
    }
    cache.drop_sequence(first)?;
    assert_eq!(cache.stats()?.shared_pages, 0);
    story.step_of_none(&mut cache, second, &plain)?;
    Ok(())
}

impl Story<f32> {
    /// Repeats attention of the last token without a step.
    fn step_of_none(
        &self,
        cache: &mut KvCache,
        sequence: Sequence,
        options: &Options<'_>,
    ) -> Result<()> {
        let known = cache.length(sequence)?;
        let q = part(&self.q, SIZE, (known - 1, known));
        let mut dst = vec![0f32; HEADS * VALUE];
        let to = Heads::new(&mut dst[..], [1, HEADS, 1, VALUE]);
        let q = Heads::new(&q[..], [1, HEADS, 1, SIZE]);
        cache.attention(0, &[sequence], q, options, to)?;
        assert_eq!(bits(&dst), bits(&part(&self.dst, VALUE, (known - 1, known))));
        Ok(())
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, words: &[&str]) {
    let error: Error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word:?}");
    }
}

#[test]
fn a_full_cache_changes_nothing() -> Result<()> {
    let (engine, plain) = (Engine::cpu()?, options(Window::None, 0));
    let story = Story::<f32>::new(1, &plain)?;
    let builder = KvCache::paged(&engine, DataType::F32, 16).pages(3);
    let mut cache = sized(builder)?;
    let first = cache.new_sequence()?;
    cache.extend(&[(first, 30)], Rows::Packed)?;
    story.step(&mut cache, (0, first), (0, 30), &plain)?;
    let before = cache.stats()?;
    let words = ["tokens", "1 of the 3"];
    refused(cache.extend(&[(first, 30)], Rows::Packed), ErrorKind::OutOfMemory, &words);
    assert_eq!((cache.stats()?, cache.length(first)?), (before, 30));
    // The step is still open.
    story.step(&mut cache, (0, first), (0, 30), &plain)?;
    let second = cache.new_sequence()?;
    refused(cache.new_sequence(), ErrorKind::OutOfMemory, &["sequence"]);
    refused(cache.fork(first), ErrorKind::OutOfMemory, &["sequence"]);
    cache.drop_sequence(first)?;
    cache.extend(&[(second, 48)], Rows::Packed)?;
    assert_eq!(cache.stats()?.used_pages, 3);
    Ok(())
}

/// Rope writes the same keys to a cache as to a tensor.
#[test]
fn rope_writes_keys() -> Result<()> {
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let mut cache = sized(KvCache::paged(&engine, DataType::F32, 4))?;
    let other = cache.new_sequence()?;
    let sequence = cache.new_sequence()?;
    cache.extend(&[(sequence, 3)], Rows::Packed)?;
    cache.extend(&[(other, 1), (sequence, 3)], Rows::Padded(3))?;
    let rows = 7; // more than the six of the step
    let keys: Vec<f32> = numbers(3, rows * GROUPS * SIZE, -1.0, 1.0);
    let src = MemoryDesc::dense(&[rows, GROUPS, SIZE], DataType::F32)?;
    let positions = MemoryDesc::dense(&[rows, 1], DataType::S32)?;
    let frequencies = memory(&engine, &[SIZE / 2], &[1.0f64, 0.5, 0.25, 0.125]);
    let rope = rope::Forward::new(&engine, Pairing::HalfSplit, &src, &positions);
    let into = rope.dst(cache.rope_dst_desc()?).slots().build()?;
    let plain = rope::Forward::new(&engine, Pairing::HalfSplit, &src, &positions).build()?;
    let keys = memory(&engine, &[rows, GROUPS, SIZE], &keys);
    let args = rope::ForwardArgs::to_cache(&keys, cache.rope_args(1)?)?;
    into.execute(&stream, args.frequencies(&frequencies))?;

    let at = memory(&engine, &[rows, 1], &[0i32, 0, 0, 3, 4, 5, 0]);
    let mut rotated = Memory::new(&engine, &src)?;
    let args = rope::ForwardArgs::new(&keys, &mut rotated, &at).frequencies(&frequencies);
    plain.execute(&stream, args)?;
    // Nothing is read before both are there.
    refused(cache.sdpa_args(1, &[sequence]), ErrorKind::InvalidArguments, &["no values"]);
    let values = memory(&engine, &[2, GROUPS, 3, VALUE], &[0f32; 2 * GROUPS * 3 * VALUE]);
    cache.write_values(&stream, 1, &values)?;
    // Token 4 of the sequence is row 4 of the step and the first token of the sequence's second page.
    let layer = cache.sdpa_args(1, &[sequence])?;
    let raw = layer.raw()?;
    let data = |arg| raw.iter().find(|raw| raw.arg == arg).unwrap().data;
    // SAFETY: the cache is borrowed, and tables and keys of tokens that were written are initialized.
    let key = unsafe {
        let page = data(Arg::PageTable).cast::<i32>().add(1).read() as usize;
        let first = data(Arg::Keys).cast::<f32>().add(page * GROUPS * 4 * SIZE);
        std::slice::from_raw_parts(first, SIZE)
    };
    let expected = &rotated.as_slice::<f32>()?[4 * GROUPS * SIZE..][..SIZE];
    assert_eq!(bits(key), bits(expected));
    Ok(())
}

#[test]
fn errors_say_what_to_change() -> Result<()> {
    use ErrorKind::{InvalidArguments, Unimplemented};
    let engine = Engine::cpu()?;
    let stream = Stream::new(&engine)?;
    let paged = KvCache::paged(&engine, DataType::F32, 4);
    let heads = paged.build().unwrap_err();
    assert_eq!(
        (heads.to_string().as_str(), heads.argument()),
        ("heads: 0 is below 1", Some("heads"))
    );
    refused(paged.heads(1).key_size(2).build(), InvalidArguments, &["tokens: 0"]);
    refused(sized(KvCache::paged(&engine, DataType::F32, 0)), InvalidArguments, &["page_size"]);
    refused(sized(paged.first_tokens(1)), InvalidArguments, &["first_tokens"]);
    refused(sized(KvCache::contiguous(&engine, DataType::S32)), InvalidArguments, &["data_type"]);
    let wide = paged.heads(1).key_size(70_000).tokens(1);
    refused(wide.build(), Unimplemented, &["key_size"]);
    let ring = KvCache::ring(&engine, DataType::F32, 4, Window::None);
    refused(sized(ring), InvalidArguments, &["window: 0"]);

    let (mut cache, mut another) = (sized(paged)?, sized(paged)?);
    let (sequence, stranger) = (cache.new_sequence()?, another.new_sequence()?);
    assert_eq!(sequence.number(), stranger.number());
    refused(cache.length(stranger), InvalidArguments, &["sequence", "another cache"]);
    refused(cache.extend(&[(stranger, 1)], Rows::Packed), InvalidArguments, &["another cache"]);
    refused(cache.sdpa_args(0, &[stranger]), InvalidArguments, &["another cache"]);
    refused(cache.extend(&[(sequence, 1)], Rows::Padded(0)), InvalidArguments, &["rows"]);
    refused(cache.extend(&[(sequence, 65)], Rows::Packed), InvalidArguments, &["65", "64"]);
    refused(cache.truncate(sequence, 1), InvalidArguments, &["length"]);
    refused(cache.page_table_desc(3), InvalidArguments, &["count is 3", "2"]);
    refused(cache.rope_args(2), InvalidArguments, &["layer"]);
    refused(cache.sdpa_args(2, &[sequence]), InvalidArguments, &["layer"]);
    let keys = memory(&engine, &[1, GROUPS, 1, SIZE], &[0f32; GROUPS * SIZE]);
    refused(cache.write_keys(&stream, 0, &keys), InvalidArguments, &["no step is open"]);
    cache.extend(&[(sequence, 2)], Rows::Packed)?;
    refused(cache.write_keys(&stream, 0, &keys), InvalidArguments, &["keys", "2 or more"]);
    refused(cache.sdpa_args(0, &[sequence]), InvalidArguments, &["layer 0", "write them first"]);
    let keys = memory(&engine, &[1, GROUPS, 2, SIZE], &[0f32; GROUPS * 2 * SIZE]);
    cache.write_keys(&stream, 0, &keys)?;
    refused(cache.sdpa_args(0, &[sequence]), InvalidArguments, &["layer 0 has no values"]);
    let values = memory(&engine, &[1, GROUPS, 2, VALUE], &[0f32; GROUPS * 2 * VALUE]);
    cache.write_values(&stream, 0, &values)?;

    // Attention with another number of columns, or without a table.
    let query = MemoryDesc::dense(&[1, HEADS, 1, SIZE], DataType::F32)?;
    let table = MemoryDesc::dense(&[1, 3], DataType::S32)?;
    let (key, value) = (cache.key_desc().clone(), cache.value_desc().clone());
    let builder = Forward::inference(&engine, &query, &key, &value);
    let primitive = builder.key_lengths().page_table(&table).build()?;
    let (q, mut dst) =
        (Memory::new(&engine, &query)?, memory(&engine, &[1, HEADS, 1, VALUE], &[0f32; 24]));
    let layer = cache.sdpa_args(0, &[sequence])?;
    let args = ForwardArgs::cached(&q, layer, &mut dst)?;
    refused(primitive.execute(&stream, args), InvalidArguments, &["page_table", "PageTable"]);
    let table = another.page_table_desc(1)?;
    let primitive = builder.page_table(&table).build()?;
    let layer = cache.sdpa_args(0, &[sequence])?;
    let args = ForwardArgs::cached(&q, layer, &mut dst)?;
    refused(primitive.execute(&stream, args), InvalidArguments, &["key_lengths", "not used"]);

    cache.drop_sequence(sequence)?;
    refused(cache.length(sequence), InvalidArguments, &["sequence"]);
    refused(cache.fork(sequence), InvalidArguments, &["sequence"]);
    let one = [1f32; SIZE * HEADS];
    let mut to = [0f32; VALUE * HEADS];
    let q = Heads::new(&one[..], [1, HEADS, 1, SIZE]);
    let mut run = |sequences: &[Sequence], options: Options<'_>| {
        cache.attention(0, sequences, q, &options, Heads::new(&mut to[..], [1, HEADS, 1, VALUE]))
    };
    refused(run(&[], Options::default()), InvalidArguments, &["sequences has 0", "q 1"]);
    let lengths = Options { key_lengths: Some(&[1]), ..Options::default() };
    refused(run(&[Sequence::NONE], lengths), InvalidArguments, &["key_lengths"]);

    // Attention to a ring needs the ring's window.
    let mut ring = sized(KvCache::ring(&engine, DataType::F32, 4, Window::BeforeSelf(9)))?;
    let sequence = ring.new_sequence()?;
    let mut run = |options: Options<'_>| {
        ring.attention(0, &[sequence], q, &options, Heads::new(&mut to[..], [1, HEADS, 1, VALUE]))
    };
    refused(run(Options::default()), InvalidArguments, &["causal", "ring"]);
    refused(run(options(Window::None, 0)), InvalidArguments, &["window is None"]);
    refused(run(options(Window::WithSelf(11), 0)), InvalidArguments, &["window is WithSelf(11)"]);
    refused(run(options(Window::WithSelf(10), 1)), InvalidArguments, &["1 first keys"]);
    run(options(Window::WithSelf(10), 0))?;
    Ok(())
}

/// Threads may read the lengths of one cache, and a cache may move to another thread.
#[test]
fn threads() -> Result<()> {
    let engine = Engine::cpu()?;
    let mut cache = sized(KvCache::paged(&engine, DataType::F32, 4))?;
    let sequence = cache.new_sequence()?;
    cache.extend(&[(sequence, 5)], Rows::Packed)?;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                assert_eq!(cache.length(sequence).unwrap(), 5);
                assert_eq!(cache.stats().unwrap().used_pages, 2);
            });
        }
    });
    let moved = std::thread::spawn(move || cache.length(sequence).unwrap());
    assert_eq!(moved.join().unwrap(), 5);
    Ok(())
}

/// 8-bit keys and values with scales for each token and head are close to plain tensors, through a fork and a
/// truncation.
#[test]
fn quantized_caches() -> Result<()> {
    let (engine, plain) = (Engine::cpu()?, options(Window::None, 0));
    let story = Story::<f32>::new(1, &plain)?;
    for (data_type, allowed) in [(DataType::S8, 0.02), (DataType::F8E4m3, 0.1)] {
        let mut cache = sized(KvCache::paged(&engine, data_type, 16))?;
        let first = cache.new_sequence()?;
        let run = |cache: &mut KvCache, sequence, range: (usize, usize)| -> Result<Vec<f32>> {
            let count = range.1 - range.0;
            cache.extend(&[(sequence, count)], Rows::Packed)?;
            let (k, v) = (part(&story.k, SIZE, range), part(&story.v, VALUE, range));
            let (of_k, of_v) = ([1, GROUPS, count, SIZE], [1, GROUPS, count, VALUE]);
            cache.write_slices(1, Heads::new(&k[..], of_k), Heads::new(&v[..], of_v))?;
            let q = part(&story.q, SIZE, range);
            let mut dst = vec![9f32; HEADS * count * VALUE];
            let to = Heads::new(&mut dst[..], [1, HEADS, count, VALUE]);
            let q = Heads::new(&q[..], [1, HEADS, count, SIZE]);
            cache.attention(1, &[sequence], q, &plain, to)?;
            for (got, want) in dst.iter().zip(part(&story.dst, VALUE, range)) {
                assert!((got - want).abs() <= allowed, "{data_type} {range:?}: {got}, not {want}");
            }
            Ok(dst)
        };
        run(&mut cache, first, (0, 50))?;
        let second = cache.fork(first)?;
        let of_first = run(&mut cache, first, (50, 57))?;
        assert_eq!(run(&mut cache, second, (50, 57))?, of_first);
        cache.truncate(second, 40)?;
        run(&mut cache, second, (40, 90))?;
        let args = cache.sdpa_args(1, &[second])?.raw()?;
        assert_eq!(args.len(), 6, "{args:?}");
        refused(cache.rope_dst_desc().map(|_| ()), ErrorKind::Unimplemented, &["rope_dst_desc"]);
        refused(cache.rope_args(1), ErrorKind::Unimplemented, &["rope"]);
    }
    Ok(())
}
