//! Profiles: error messages, derived values, and arbitrary input.

use crate::small::{PROFILE, Twin, profile, profile_with, replaced};
use proptest::prelude::*;
use ssdlab_device::Op;
use ssdlab_flash::Profile;
use ssdlab_testing::scaled;

/// For each text in the profile, its replacement and a part of the error message.
fn assert_errors(cases: &[(&str, &str, &str)]) {
    for (text, other, message) in cases {
        let error = Profile::from_toml(&replaced(text, other)).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "one line: {error}");
        assert!(error.contains(message), "{other:?} gives {error:?}, without {message:?}");
    }
}

#[test]
fn an_error_names_the_key_and_its_allowed_values() {
    assert_errors(&[
        ("chunk = ", "chnk = ", "ftl.chnk: no such key, did you mean chunk?"),
        ("[ftl]", "[flt]", "flt (a table at the top): no such key, did you mean ftl?"),
        ("page = \"16 KiB\"", "page = \"16\"", "flash.page: is \"16\"; may be a size"),
        ("page = \"16 KiB\"", "page = 16384", "flash.page: is 16384; may be a size"),
        ("page = \"16 KiB\"", "page = \"0 KiB\"", "above zero"),
        ("page = \"16 KiB\"", "page = \"18 KiB\"", "a multiple of ftl.mapping_unit"),
        ("read = \"50 us\"", "read = []", "flash.read: is []; may be a time"),
        ("read = \"50 us\"", "read = \"50 MB\"", "may be a time"),
        ("program = \"700 us\"", "", "flash.program: is missing"),
        ("channels = 2", "chanels = 2", "flash.chanels: no such key, did you mean channels?"),
        ("channels = 2", "channels = { value = 2, sorce = \"x\" }", "channels.sorce: no such key"),
        ("channels = 2", "channels = { value = 2, kind = \"dreamt\" }", "one of \"datasheet\""),
        ("channels = 2", "channels = { source = \"its label\" }", "flash.channels: is"),
        ("channels = 2", "channels = 0", "a whole number from 1"),
        ("channels = 2", "channels = -2", "a whole number from 1"),
        ("channels = 2", "channels = 4000000000", "flash.pages_per_block"),
        ("interface = \"nvme\"", "interface = \"pcie\"", "one of \"nvme\", \"sata\""),
        ("model = \"Test\"", "", "drive.model: is missing"),
        ("spare = 0.28", "spare = 1.0", "a share from 0 to below 1"),
        ("spare = 0.28", "spare = 0.0", "ftl.spare: is 0.0000; may be more"),
        ("spare = 0.28", "", "ftl.spare: is missing"),
        ("chunk = \"32 KiB\"", "chunk = \"6 KiB\"", "ftl.chunk: is 6144 bytes; may be a multiple"),
        ("chunk = \"32 KiB\"", "chunk = \"24 KiB\"", "ftl.chunk"),
        ("mapping_unit = \"4 KiB\"", "mapping_unit = \"3 KiB\"", "a power of two"),
        ("capacity = \"64 MiB\"", "capacity = \"8000000 GB\"", "at most 15 TiB of flash"),
        ("size = \"1 MiB\"", "size = \"32 KiB\"", "buffer.size: is 32768 bytes; may be at least"),
        ("max_transfer = \"128 KiB\"", "max_transfer = \"1 KiB\"", "link.max_transfer"),
        (
            "read_overhead = \"20 us\"",
            "read_overhead = \"20 us\"\nread_command = \"21 us\"",
            "link.read_command: is 21000 ns; may be at most the overhead",
        ),
        ("size = \"1 MiB\"", "size = \"1 MiB\"\nflush_overhead = 3", "buffer.flush_overhead: is 3"),
        ("spare = 0.28", "spare = 0.28\nread_portion = \"6 KiB\"", "ftl.read_portion"),
        ("spare = 0.28", "spare = 0.28\nread_portions = 0", "ftl.read_portions"),
        ("spare = 0.28", "spare = 0.28\npacing = \"page\"", "one of \"unit\", \"victim\""),
        ("pages_per_block = 16", "pages_per_block = 16\nblocks_per_plane = 16", "ftl.spare"),
        ("[buffer]", "[slc]\nprogram = \"1 ms\"\n[buffer]", "slc.size: is missing"),
        ("[buffer]", "[slc]\nsize = \"8 MiB\"\n[buffer]", "slc.program: is missing"),
        ("[buffer]", "[slc]\nfolding = \"no\"\n[buffer]", "one of \"idle\", \"while writing\""),
        (
            "[buffer]",
            "[slc]\nfolding = \"while writing\"\n[buffer]",
            "slc.folding: is \"while writing\"; may be \"idle\", unless slc.mode is \"dynamic\"",
        ),
        (
            "[buffer]",
            "[slc]\nsize = \"8 MiB\"\nmode = \"big\"\n[buffer]",
            "\"static\", \"dynamic\"",
        ),
        ("[buffer]", "[slc]\nbits_per_cell = 17\nsize = \"8 MiB\"\n[buffer]", "2 to 16"),
        ("[buffer]", "[trim]\nreads_back = \"ones\"\n[buffer]", "one of \"zeros\", \"old data\""),
        (
            "erase = \"3 ms\"",
            "erase = \"3 ms\"\nfailure_spread = 0.2",
            "flash.failure_cycles: is missing",
        ),
        ("[drive]", "drive = 3\n[x]", "drive: is 3; may be a table"),
        ("[drive]", "[drive", "line 2: not TOML"),
    ]);
}

#[test]
fn rules_for_reads_that_do_not_fit_are_rejected() {
    assert_errors(&[
        (
            "planes = 2",
            "planes = 2\ndelay_limit = \"2\"",
            "flash.delay_limit: is \"2\"; may be a time",
        ),
        (
            "page = \"16 KiB\"",
            "page = \"96 KiB\"\nindependent_plane_reads = true",
            "flash.page: is 98304 bytes; may be a power of two if",
        ),
        (
            "planes = 2",
            "planes = 1\nindependent_plane_reads = true",
            "flash.planes: is 1; may be 2 to 64 if flash.independent_plane_reads is true",
        ),
        (
            "planes = 2",
            "planes = 2\nindependent_plane_reads = true\ncache_register = false",
            "flash.cache_register: is false; may be true if flash.independent_plane_reads is",
        ),
    ]);
}

#[test]
fn power_states_and_heat_that_do_not_fit_are_rejected() {
    assert_errors(&[
        ("[buffer]", "[power]\nidle_time = \"1 s\"\n[buffer]", "power.exit_latency: is missing"),
        ("[buffer]", "[power]\nexit_latency = \"1 s\"\n[buffer]", "power.idle_time: is missing"),
        ("[buffer]", "[power]\nidle_tme = \"1 s\"\n[buffer]", "did you mean idle_time?"),
        (
            "[buffer]",
            "[power]\nidle_time = [\"1 s\", \"2 s\"]\nexit_latency = \"1 ms\"\n[buffer]",
            "power.exit_latency: is 1 times; may be 2, as many as power.idle_time",
        ),
        (
            "[buffer]",
            "[power]\nidle_time = [\"2 s\", \"1 s\"]\nexit_latency = [\"1 s\", \"2 s\"]\n[buffer]",
            "power.idle_time: is 2 times; may be times that ascend",
        ),
        (
            "[buffer]",
            "[thermal]\nidle = \"40\"\n[buffer]",
            "thermal.idle: is \"40\"; may be a temp",
        ),
        ("[buffer]", "[thermal]\nread_heat = \"2 K\"\n[buffer]", "thermal.idle: is missing"),
        ("[buffer]", "[thermal]\nidle = \"40 C\"\n[buffer]", "thermal.time_constant: is missing"),
        (
            "[buffer]",
            "[thermal]\nidle = \"40 C\"\ntime_constant = \"1 us\"\n[buffer]",
            "thermal.time_constant: is 1000 ns; may be 1 ms or more",
        ),
        (
            "[buffer]",
            "[thermal]\nidle = \"40 C\"\ntime_constant = \"1 s\"\nread_heat = \"2 K\"\n[buffer]",
            "thermal.read_heat: is \"2 K\"; may be a rise up to 1000 K/GB",
        ),
        (
            "[buffer]",
            "[thermal]\nidle = \"40 C\"\ntime_constant = \"1 s\"\n\
             throttle_at = \"70 C\"\n[buffer]",
            "thermal.throttled_speed: is 0; may be 1, as many as thermal.throttle_at",
        ),
        (
            "[buffer]",
            "[thermal]\nidle = \"40 C\"\ntime_constant = \"1 s\"\n\
             throttle_at = [\"70 C\", \"60 C\"]\nthrottled_speed = [0.5, 0.2]\n[buffer]",
            "thermal.throttle_at: is [70.0, 60.0]; may be temperatures that ascend",
        ),
        (
            "[buffer]",
            "[thermal]\nidle = \"40 C\"\ntime_constant = \"1 s\"\nthrottle_at = \"70 C\"\n\
             throttled_speed = 0\n[buffer]",
            "thermal.throttled_speed: is 0; may be a share from 0.01 to 1",
        ),
    ]);
}

#[test]
fn an_unknown_placement_or_one_that_does_not_fit_is_rejected() {
    // Lines at the end of the section `[ftl]`, and the buffer's size.
    for (ftl, size, message) in [
        ("placement = \"random\"", "1 MiB", "\"inferred\", \"packed\""),
        ("placement = \"streams\"", "1 MiB", "ftl.streams: is missing"),
        ("streams = 2", "1 MiB", "ftl.streams: is given; may be left out, unless"),
        ("placement = \"streams\"\nstreams = 129", "1 MiB", "ftl.streams: is 129; may be 1 to 128"),
        ("placement = \"streams\"\nstreams = 16", "1 MiB", "hold 19 superblocks of"),
        (
            "placement = \"streams\"\nstreams = 2",
            "64 KiB",
            "buffer.size: is 65536 bytes; may be at least 98304 bytes: what the pages",
        ),
        (
            "placement = \"hinted\"",
            "128 KiB",
            "buffer.size: is 131072 bytes; may be at least 163840 bytes",
        ),
    ] {
        let lines = format!("{ftl}\n[buffer]\nsize = \"{size}\"");
        assert_errors(&[("[buffer]\nsize = \"1 MiB\"", &lines, message)]);
    }
}

#[test]
fn a_number_may_have_a_source_and_a_kind() {
    let sourced = "channels = { value = 2, source = \"its label\", kind = \"datasheet\" }";
    let profile = profile_with("channels = 2", sourced);
    assert_eq!(profile.geometry.channels, 2);
    let unknown = "channels = { value = 2, origin = \"its label\" }";
    assert_errors(&[("channels = 2", unknown, "flash.channels")]);
}

#[test]
fn each_of_capacity_spare_and_blocks_can_be_derived_from_the_others() {
    let full = profile();
    let blocks = full.geometry.blocks_per_plane;
    let with_blocks = |spare: &str| {
        PROFILE.replace("spare = 0.28", spare).replace(
            "pages_per_block = 16",
            &format!("pages_per_block = 16\nblocks_per_plane = {blocks}"),
        )
    };
    let no_spare = Profile::from_toml(&with_blocks("")).unwrap();
    assert_eq!(no_spare.geometry, full.geometry);
    assert_eq!(Profile::from_toml(&with_blocks("spare = 0.28")).unwrap().geometry, full.geometry);
    let no_capacity = with_blocks("spare = 0.28").replace("capacity = \"64 MiB\"", "");
    let derived = Profile::from_toml(&no_capacity).unwrap();
    assert!((derived.spare() - 0.28).abs() < 0.01, "{}", derived.spare());
}

#[test]
fn a_scaled_profile_keeps_spare_and_erase_time_per_page() {
    let text = PROFILE
        .replace("capacity = \"64 MiB\"", "capacity = \"512 GB\"")
        .replace("pages_per_block = 16", "pages_per_block = 768");
    let full = Profile::from_toml(&text).unwrap();
    for gibibytes in [1, 8, 64, 1024] {
        let scaled = full.scaled_to(gibibytes << 30).unwrap();
        assert_eq!(scaled.capacity, gibibytes << 30);
        let (spare, expected) = (scaled.spare(), full.spare());
        assert!((spare - expected).abs() < 0.01, "{gibibytes} GiB: {spare}");
        assert!(scaled.geometry.blocks_per_plane >= 100, "{gibibytes} GiB");
        assert_eq!(scaled.geometry.dies(), full.geometry.dies());
        let erase_share =
            |p: &Profile| p.timing.erase.get() / u64::from(p.geometry.pages_per_block);
        assert_eq!(erase_share(&scaled), erase_share(&full), "{gibibytes} GiB");
    }
    assert!(full.scaled_to(1 << 20).is_err(), "1 MiB leaves no spare superblocks");
}

#[test]
fn blocks_of_odd_length_are_halved_only_if_the_drive_would_be_too_small() {
    let text = PROFILE
        .replace("capacity = \"64 MiB\"", "capacity = \"512 GB\"")
        .replace("pages_per_block = 16", "pages_per_block = 4097");
    let full = Profile::from_toml(&text).unwrap();
    let pages = |mebibytes: u64| {
        let scaled = full.scaled_to(mebibytes << 20).unwrap();
        let ratio = f64::from(scaled.geometry.pages_per_block) / 4097.0;
        let erase = scaled.timing.erase.get() as f64 / full.timing.erase.get() as f64;
        assert!((erase / ratio - 1.0).abs() < 0.01, "{erase} for {ratio} of a block");
        assert!((scaled.spare() - full.spare()).abs() < 0.05);
        scaled.geometry.pages_per_block
    };
    assert_eq!(pages(64 << 10), 4097);
    let small = pages(64);
    assert!(small < 4097 && (4097 >> (12 - small.ilog2())) == small, "{small}");
}

#[test]
fn a_scaled_profile_has_memory_for_the_same_share_of_its_map() {
    let full = "capacity = \"512 GB\"";
    let text = PROFILE
        .replace("capacity = \"64 MiB\"", full)
        .replace("pages_per_block = 16", "pages_per_block = 768")
        .replace("[ftl]", "[ftl]\nmap_cache = \"200 MB\"");
    let full = Profile::from_toml(&text).unwrap();
    assert_eq!(full.map_cache, 200_000_000);
    assert_eq!(
        full.scaled_to(1 << 30).unwrap().map_cache,
        200_000_000 / 512 * (1 << 30) / 1_000_000_000
    );
}

#[test]
fn blocks_are_not_halved_below_what_a_cache_of_one_bit_per_cell_needs() {
    let text = PROFILE
        .replace("capacity = \"64 MiB\"", "capacity = \"512 GB\"")
        .replace("pages_per_block = 16", "pages_per_block = 1024");
    let cached =
        format!("{text}\n[slc]\nsize = \"20 GB\"\nbits_per_cell = 16\nprogram = \"99 us\"\n");
    let pages = |text: &str| {
        let full = Profile::from_toml(text).unwrap();
        full.scaled_to(64 << 20).unwrap().geometry.pages_per_block
    };
    assert!(pages(&text) < 16, "{}", pages(&text));
    assert_eq!(pages(&cached), 16);
}

/// Sections that the small profile does not have.
const MORE_SECTIONS: &str = r#"
[slc]
size = "8 MiB"
mode = "dynamic"
bits_per_cell = 3
program = "100 us"
read = "20 us"
[trim]
time = "10 us"
time_per_gib = "1 ms"
"#;

/// The small profile with block failures, an SLC cache and slow trims.
fn extended() -> String {
    let failing = "erase = \"3 ms\"\nfailure_cycles = 300\nfailure_spread = 0.1";
    replaced("erase = \"3 ms\"", failing) + MORE_SECTIONS
}

/// A profile with random values in some of its lines.
fn mutated() -> impl Strategy<Value = String> {
    let values = prop_oneof![
        "[0-9]{1,20}",
        "-[0-9]{1,5}",
        "\"[0-9]{1,15}(\\.[0-9]{1,5})? ?[KMGT]?i?B(/s)?\"",
        "\"[0-9]{1,18} ?(ns|us|ms|s)\"",
        "0\\.[0-9]{1,9}",
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{ value = 3 }".to_owned()),
        Just("\"\"".to_owned()),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), values), 1..5);
    changes.prop_map(|changes| {
        let mut lines: Vec<String> = extended().lines().map(str::to_owned).collect();
        for (index, value) in changes {
            let line = index.get_mut(&mut lines);
            if let Some((key, _)) = line.clone().split_once('=') {
                *line = format!("{key}= {value}");
            }
        }
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(1000), ..ProptestConfig::default() })]

    #[test]
    fn mutated_profiles_do_not_panic_the_parser(text in mutated()) {
        match Profile::from_toml(&text) {
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            // A valid profile must work. A huge drive would exceed the memory of the machine.
            Ok(profile) if profile.geometry.bytes() < 4 << 30 => {
                let mut twin = Twin::new(&profile);
                twin.request(Op::Write, 0, 1);
                twin.request(Op::Read, 0, 1);
                twin.flush();
            }
            Ok(_) => {}
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic_the_parser(text in "\\PC{0,200}") {
        let _ = Profile::from_toml(&text);
    }
}
