#!/usr/bin/env bash
# How many host requests a second the twin simulates, and flash programs a second without a clock.
set -eu
cargo bench -p ssdlab-workload --bench twin
