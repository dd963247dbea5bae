#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    norm_fuzz::attention::run(data);
});
