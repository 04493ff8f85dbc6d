//! `TwinDrive`: the flash model as a drive that the engine can serve.

use ssdlab_device::{Completion, Device, DeviceError, Lba, Op, Request, Wait};
use ssdlab_engine::{
    Counter, Drive, DriveParameters, Geometry, Health, Inside, LostWrites, PowerCutLoss,
};
use ssdlab_flash::{
    PlacementRule, Profile, ReadsBack, Relocation, Ssd, UnitLocation, die_rows, superblock_rows,
};
use ssdlab_time::Nanos;

/// A twin, whose time is virtual.
pub struct TwinDrive {
    ssd: Ssd,
    model: String,
    spare: f64,
    dimensions: [(&'static str, u64); 15],
    geometry: Geometry,
    /// Bytes of an erase block on one die.
    erase_bytes: u64,
}

impl Device for TwinDrive {
    fn capacity_bytes(&self) -> u64 {
        self.ssd.capacity_bytes()
    }

    fn sector_bytes(&self) -> u64 {
        self.ssd.sector_bytes()
    }

    fn queue_depth(&self) -> usize {
        self.ssd.queue_depth()
    }

    fn now(&self) -> Nanos {
        self.ssd.now()
    }

    fn announce(&mut self, op: Op, lba: Lba) {
        self.ssd.announce(op, lba);
    }

    fn submit(&mut self, request: Request) -> Result<(), DeviceError> {
        self.ssd.submit(request)
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        self.ssd.reap(wait, done)
    }
}

impl Drive for TwinDrive {
    fn parameters(&self) -> DriveParameters {
        DriveParameters {
            capacity: self.ssd.capacity_bytes(),
            unit_bytes: self.ssd.unit_bytes(),
            max_transfer: self.ssd.max_transfer(),
            trims_to_zeros: self.ssd.trim_reads_back() == ReadsBack::Zeros,
            queue_depth: self.ssd.queue_depth(),
            volatile_units: self.ssd.volatile_units(),
        }
    }

    fn is_mapped(&self, unit: u64) -> bool {
        self.ssd.locate(unit) != UnitLocation::Unmapped
    }

    fn die_of(&self, unit: u64) -> Option<u32> {
        let UnitLocation::Flash { die, .. } = self.ssd.locate(unit) else { return None };
        Some(die)
    }

    fn erase_count_of(&self, unit: u64) -> Option<u32> {
        let UnitLocation::Flash { block, .. } = self.ssd.locate(unit) else { return None };
        Some(self.ssd.superblocks()[block as usize].erases)
    }

    fn is_read_only(&self) -> bool {
        self.ssd.service().read_only
    }

    fn boxed_clone(&self) -> Box<dyn Drive> {
        Box::new(Self { ssd: self.ssd.clone(), model: self.model.clone(), ..*self })
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn health(&self) -> Health {
        let (counters, wear) = (self.ssd.counters(), self.ssd.wear());
        Health {
            written_bytes: counters.host_write_bytes,
            programmed_bytes: counters.nand_writes() * counters.unit_bytes,
            erased_bytes: counters.erases * self.erase_bytes,
            percentage_used: wear.percentage_used,
            spare_percent: self.ssd.service().spare_percent(),
            mapped_units: self.ssd.mapped_units(),
            celsius: self.ssd.temperature().map(|now| now.celsius),
        }
    }

    fn stream_room(&self, stream: u32) -> u64 {
        self.ssd.stream_room(stream)
    }

    fn renew_stream(&mut self, stream: u32) -> bool {
        self.ssd.renew_stream(stream)
    }

    fn submit_timed(&mut self, request: Request) -> Completion {
        self.ssd.submit_timed(request)
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.ssd.next_completion()
    }

    fn power_cut(&mut self) -> PowerCutLoss {
        let cut = self.ssd.power_cut(self.ssd.now());
        let lost = cut.lost.iter().map(|each| LostWrites { unit: each.unit, writes: each.writes });
        PowerCutLoss { lost: lost.collect(), unanswered: cut.unanswered.len() }
    }

    fn counters(&self) -> Vec<Counter> {
        let (counters, wear, service) = (self.ssd.counters(), self.ssd.wear(), self.ssd.service());
        let mut list = vec![
            ("host_reads", Some(counters.host_reads as f64)),
            ("host_writes", Some(counters.host_writes as f64)),
            ("host_trims", Some(counters.host_trims as f64)),
            ("host_writes_lost", Some(counters.host_writes_lost as f64)),
            ("host_write_bytes", Some(counters.host_write_bytes as f64)),
            ("erases", Some(counters.erases as f64)),
            ("waf", counters.waf()),
            ("percentage_used", wear.percentage_used),
            ("available_spare_percent", Some(service.spare_percent())),
            ("virtual_s", Some(self.ssd.now().as_secs_f64())),
        ];
        let temperature = self.ssd.temperature();
        list.extend(temperature.map(|now| ("temperature_c", Some(now.celsius))));
        list
    }

    fn inside(&self) -> Option<Inside> {
        let (ssd, counters, space) = (&self.ssd, self.ssd.counters(), self.ssd.space());
        Some(Inside {
            model: self.model.clone(),
            spare: self.spare,
            dimensions: self.dimensions.to_vec(),
            state: vec![
                ("clock_ns", ssd.now().get()),
                ("mapped_units", ssd.mapped_units()),
                ("free_superblocks", space.free_superblocks as u64),
                ("buffered_units", space.buffered_units),
                ("programmed_units", counters.nand_writes()),
                ("lost_units", counters.host_writes_lost),
            ],
            counters: counters.named().to_vec(),
            superblocks: superblock_rows(ssd).collect(),
            dies: die_rows(ssd).collect(),
        })
    }
}

impl TwinDrive {
    /// A new, empty twin of a profile. Equal seeds give equal twins.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        let geometry = &profile.geometry;
        let erase_bytes = geometry.superblock_bytes() / u64::from(geometry.dies());
        Self {
            ssd: Ssd::new(profile, seed),
            model: profile.model.clone(),
            spare: profile.spare(),
            dimensions: profile.dimensions(),
            geometry: drive_geometry(profile),
            erase_bytes,
        }
    }
}

/// The part of a profile's geometry that hosts can read.
fn drive_geometry(profile: &Profile) -> Geometry {
    let geometry = &profile.geometry;
    Geometry {
        stripe_bytes: u64::from(geometry.stripe_units()) * geometry.unit_bytes(),
        superblock_bytes: geometry.superblock_bytes(),
        streams: match profile.placement {
            PlacementRule::Streams(count) => count,
            _ => 0,
        },
        persistently_isolated: profile.collection.relocation == Relocation::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Device, Lba, Op, Request, Wait};
    use ssdlab_engine::Drive;
    use ssdlab_flash::Profile;
    use ssdlab_time::Random;

    use super::TwinDrive;

    const PROFILE: &str = r#"
[drive]
model = "Small"
capacity = "128 MiB"
interface = "nvme"
[link]
bandwidth = "3200 MiB/s"
max_transfer = "256 KiB"
[flash]
channels = 1
dies_per_channel = 2
planes = 2
page = "16 KiB"
pages_per_block = 16
read = "50 us"
program = "500 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
[ftl]
spare = 0.2
[buffer]
size = "4 MiB"
"#;

    #[test]
    fn the_health_log_counts_written_programmed_and_erased_bytes() {
        let mut drive = TwinDrive::new(&Profile::from_toml(PROFILE).unwrap(), 0);
        let write_bytes = 128_u64 << 10;
        for number in 0..3 * drive.capacity_bytes() / write_bytes {
            let lba = Lba::from_bytes(number * write_bytes % drive.capacity_bytes());
            let blocks = (write_bytes / 512) as u32;
            drive.submit_timed(Request::new(0, Op::Write, lba, blocks));
            drive.reap(Wait::One, &mut Vec::new()).unwrap();
        }
        drive.submit_timed(Request::flush(0));
        let health = drive.health();
        let counters = drive.counters();
        let count = |name| counters.iter().find(|each| each.0 == name).unwrap().1.unwrap();
        assert_eq!(health.written_bytes, 3 * drive.capacity_bytes());
        assert!(health.programmed_bytes >= health.written_bytes);
        assert!(count("erases") > 0.0);
        // An erase block of a die: 16 pages of 16 KiB in each of 2 planes.
        assert_eq!(health.erased_bytes, count("erases") as u64 * (512 << 10));
    }

    #[test]
    fn the_inside_adds_up_to_the_counters() {
        let profile = Profile::from_toml(PROFILE).unwrap();
        let mut drive = TwinDrive::new(&profile, 0);
        let units = drive.capacity_bytes() / 4096;
        let mut random = Random::new(3, "addresses");
        for _ in 0..3 * units {
            let lba = Lba::from_bytes(random.below(units) * 4096);
            drive.submit_timed(Request::new(0, Op::Write, lba, 8));
            drive.reap(Wait::One, &mut Vec::new()).unwrap();
        }
        let inside = drive.inside().unwrap();
        let of = |list: &[(&str, u64)], name| {
            list.iter().find(|each| each.0 == name).expect("it has this").1
        };
        let sum = |column: usize| -> u64 {
            inside.superblocks.iter().map(|row| u64::from(row[column])).sum()
        };
        let free = inside.superblocks.iter().filter(|row| row[2] as u8 == 0).count() as u64;
        let programmed: u64 = inside
            .counters
            .iter()
            .filter(|each| each.0.starts_with("nand_"))
            .map(|each| each.1)
            .sum();
        assert!(of(&inside.counters, "nand_collection_writes") > 0);
        assert_eq!(sum(0), of(&inside.state, "mapped_units"));
        assert_eq!(free, of(&inside.state, "free_superblocks"));
        assert_eq!(programmed, of(&inside.state, "programmed_units"));
        let dies = of(&inside.dimensions, "dies");
        assert_eq!(sum(1) * dies, of(&inside.counters, "erases"));
        assert_eq!(inside.dies.len() as u64, dies);
        assert_eq!(inside.superblocks.len() as u64, of(&inside.dimensions, "superblocks"));
        assert_eq!((inside.model.as_str(), inside.spare), ("Small", profile.spare()));
    }

    #[test]
    fn the_temperature_is_that_of_the_twin() {
        let heat =
            "[thermal]\nidle = \"40 C\"\nprogram_heat = \"1000 K/GB\"\ntime_constant = \"1 s\"";
        let names = |drive: &TwinDrive| drive.counters().last().map(|each| each.0);
        let without = TwinDrive::new(&Profile::from_toml(PROFILE).unwrap(), 0);
        assert_eq!((without.health().celsius, names(&without)), (None, Some("virtual_s")));
        let warm = Profile::from_toml(&format!("{PROFILE}{heat}")).unwrap();
        let drive = TwinDrive::new(&warm, 0);
        assert_eq!((drive.health().celsius, names(&drive)), (Some(40.0), Some("temperature_c")));
    }
}
