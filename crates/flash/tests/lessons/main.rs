//! Lessons on flash translation layers: scripts whose output is checked against the twin.
//!
//! How to read, run and update them: `docs/lessons.md`.

mod script;
mod show;
mod stage;

use std::path::{Path, PathBuf};

use script::Script;
use stage::Stage;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lessons")
}

/// Runs a lesson; with UPDATE=1 in the environment it is updated to the actual output.
fn play(name: &str) {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let script = Script::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let mut stage = Stage::default();
    let seen = script.play(|command| stage.run(command));
    let seen = seen.unwrap_or_else(|error| panic!("{name}:{error}"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, script.with(&seen)).unwrap();
        return;
    }
    let differences = script.differences(name, &seen);
    let hint = "(- the lesson, + the twin; if the twin is right: UPDATE=1)";
    assert!(differences.is_empty(), "the twin does otherwise {hint}\n{differences}");
}

#[test]
fn a_file_written_in_order_lies_in_order_and_costs_one_sense_a_page() {
    play("01-fresh.txt");
}

#[test]
fn random_overwrites_scatter_a_file_and_writing_it_again_heals_it() {
    play("02-ageing.txt");
}

#[test]
fn collection_moves_what_is_valid_and_spare_makes_that_cheap() {
    play("03-collection.txt");
}

#[test]
fn what_was_trimmed_is_never_moved() {
    play("04-trim.txt");
}

#[test]
fn a_write_is_done_in_the_buffer_and_a_flush_waits_for_flash() {
    play("05-buffer-and-flush.txt");
}

#[test]
fn each_policy_has_a_victim_of_its_own_in_the_same_drive() {
    play("06-policies.txt");
}

#[test]
fn levelling_spreads_erases_over_blocks_that_cold_data_would_keep_young() {
    play("07-wear.txt");
}

#[test]
fn reading_ahead_hides_the_senses_of_a_file_in_order_until_a_stray_unit() {
    play("08-read-ahead.txt");
}

#[test]
fn every_lesson_in_the_folder_is_played() {
    let source = include_str!("main.rs");
    let paths = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let lessons = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "txt"));
    let names = lessons.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let forgotten: Vec<String> =
        names.filter(|name| !source.contains(&format!("play(\"{name}\")"))).collect();
    assert!(forgotten.is_empty(), "no test plays {forgotten:?}");
}

#[test]
fn a_power_cut_takes_what_was_not_flushed_and_a_liar_loses_what_it_called_safe() {
    play("09-power-cut.txt");
}

#[test]
fn an_slc_cache_is_fast_until_it_is_full_and_is_folded_in_idle_time() {
    play("10-slc-cache.txt");
}

#[test]
fn a_stream_keeps_what_dies_together_apart_and_collection_finds_it_dead() {
    play("11-streams.txt");
}

#[test]
fn hints_put_a_files_pieces_on_one_die_after_the_other_until_a_die_runs_out() {
    play("12-hints.txt");
}

#[test]
fn a_portion_with_a_stray_unit_waits_for_the_one_before_it() {
    play("13-portions.txt");
}
