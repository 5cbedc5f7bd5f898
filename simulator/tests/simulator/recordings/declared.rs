//! Fields that may differ from the recording, with the reason.

/// A field of a struct.
pub struct Difference {
    /// The struct.
    pub of: &'static str,
    /// The field.
    pub field: &'static str,
    /// Why it may differ.
    #[allow(dead_code, reason = "for readers")]
    pub why: &'static str,
}

const fn row(of: &'static str, field: &'static str, why: &'static str) -> Difference {
    Difference { of, field, why }
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    row(
        "nv_ioctl_nvos33_parameters_with_fd",
        "pLinearAddress",
        "an address of the recording machine's bus or kernel",
    ),
    row("NV_MEMORY_ALLOCATION_PARAMS", "offset", "where video memory was free"),
    row("NV0005_ALLOC_PARAMETERS", "data", "an address in the recording machine's kernel"),
    row("NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS", "cid", "a number that the module counts over all clients"),
];

/// Whether a field may differ.
pub fn is_declared(of: &str, field: &str) -> Option<(&'static str, &'static str)> {
    DIFFERENCES.iter().find(|row| row.of == of && row.field == field).map(|row| (row.of, row.field))
}
