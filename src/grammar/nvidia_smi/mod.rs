//! The grammar of nvidia-smi's output in all its forms, and of its relatives.
/// stand-in
#[derive(Debug, Clone, PartialEq)]
pub struct DumpNote {
    /// p
    pub place: crate::place::Place,
    /// t
    pub text: String,
}
