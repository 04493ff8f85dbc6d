//! `layout!`: structures as they are on the wire.

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
