//! Known answers: write amplification, conservation and queueing against closed forms.

mod amplification;
mod cause;
mod counts;
mod heat;
mod hinted;
mod host;
mod pacing;
mod packed;
mod placement;
mod precedence;
mod queue;
mod reading;
mod simulation;
mod tables;
mod theory;
