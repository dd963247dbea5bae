//! Process-wide settings, tested in a separate process.

use norm_rs::info::{self, CpuIsa, Verbose};
use norm_rs::layer_normalization::Forward;
use norm_rs::{DataType, Engine, ErrorKind, MemoryDesc};

/// A single test, because the settings are shared.
#[test]
fn settings() {
    let version = info::version();
    assert_eq!(version.to_string(), env!("CARGO_PKG_VERSION"));

    // The instruction set applies to primitives created from now on and changes no bit of a result.
    let engine = Engine::cpu().unwrap();
    let desc = MemoryDesc::dense(&[3, 40], DataType::F32).unwrap();
    let implementation = || {
        let forward = Forward::inference(&engine, &desc).build().unwrap();
        forward.primitive().implementation().to_string()
    };
    let src: Vec<f32> = (0..120).map(|i| (i as f32 * 0.37).sin()).collect();
    let normalized = || {
        let mut dst = vec![0f32; 120];
        norm_rs::layer_norm(&src, 40, None::<&[f32]>, None, 1e-5, &mut dst).unwrap();
        dst.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    info::set_max_cpu_isa(None).unwrap(); // whatever the environment says
    let best = info::effective_cpu_isa();
    let (best_implementation, expected) = (implementation(), normalized());
    info::set_max_cpu_isa(Some(CpuIsa::Portable)).unwrap();
    assert_eq!(info::effective_cpu_isa(), CpuIsa::Portable);
    assert_eq!(implementation(), "simd:portable");
    assert_eq!(normalized(), expected);
    info::set_max_cpu_isa(None).unwrap();
    assert_eq!(info::effective_cpu_isa(), best);
    assert_eq!(implementation(), best_implementation);
    let foreign = if cfg!(target_arch = "aarch64") { CpuIsa::Avx2 } else { CpuIsa::Neon };
    let error = info::set_max_cpu_isa(Some(foreign)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented, "{error}");
    assert_eq!(info::effective_cpu_isa(), best);

    // Threads.
    let default = info::num_threads();
    assert!(default >= 1);
    info::set_num_threads(1).unwrap();
    assert_eq!(info::num_threads(), 1);
    let rows = vec![1.5f32; 4096 * 255];
    let mut dst = vec![0f32; rows.len()];
    norm_rs::rms_norm(&rows, 255, None::<&[f32]>, None, 0.0, &mut dst).unwrap();
    assert!(dst.iter().all(|&x| x == 1.0));
    assert_eq!(info::last_num_threads(), 1);
    info::set_num_threads(3).unwrap();
    assert_eq!(info::num_threads(), 3);
    for num_threads in [256, usize::MAX] {
        let error = info::set_num_threads(num_threads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
        assert!(error.to_string().contains("num_threads"), "{error}");
    }
    assert_eq!(info::num_threads(), 3);
    info::set_num_threads(0).unwrap();
    assert_eq!(info::num_threads(), default);
    assert_eq!(std::thread::spawn(info::last_num_threads).join().unwrap(), 0, "per thread");

    for verbose in [Verbose::All, Verbose::Executions, Verbose::Off] {
        info::set_verbose(verbose).unwrap();
    }
}
