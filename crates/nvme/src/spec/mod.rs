//! The specification's data structures and identifiers. Fields have the names of the
//! specification, in lower case; all numbers are little-endian. Fields `unused_` and their offset
//! are zero when sent and ignored when received: they are reserved, or for what is not modelled.

pub mod command_data;
pub mod identify;
pub mod log_page;

/// Declares structures as they are on the wire: no padding, and a checked size in bytes. The
/// calling crate depends on `zerocopy`.
#[macro_export]
macro_rules! layout {
    ($($(#[$doc:meta])* $vis:vis struct $name:ident[$bytes:expr] {
        $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(
            Clone,
            Copy,
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Immutable,
            zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        $vis struct $name { $($(#[$field_doc])* $field_vis $field: $type,)* }

        const _: () = assert!(size_of::<$name>() == $bytes);
    )*};
}

/// Namespace identifier of the only namespace.
pub const NSID: u32 = 1;
/// Namespace identifier that means all namespaces.
pub const BROADCAST_NSID: u32 = u32::MAX;

/// ASCII of a fixed length, padded with spaces.
pub fn ascii<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut field = [b' '; LENGTH];
    for (to, byte) in field.iter_mut().zip(text.bytes()) {
        *to = if byte.is_ascii_graphic() { byte } else { b' ' };
    }
    field
}

/// A name of a fixed length, padded with zeros.
pub fn padded<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut field = [0; LENGTH];
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}
