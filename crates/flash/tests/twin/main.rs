//! Tests of the twin through profiles and the `Device` contract.

mod command;
mod content;
mod drive;
mod power;
mod profile;
mod retire;
mod sequences;
mod slc;
mod small;
mod upkeep;
