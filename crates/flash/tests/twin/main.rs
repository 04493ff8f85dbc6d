//! Tests of the twin through profiles and the `Device` contract.

mod command;
mod drive;
mod merging;
mod mirror;
mod power;
mod power_states;
mod profile;
mod sequences;
mod slc;
mod small;
mod thermal;
mod upkeep;
