//! Test vectors: what a mechanism of this crate does to given inputs, registers included, so that other implementations
//! (hardware, P4, a software switch) can be checked bit for bit.
//!
//! A mechanism has a file with its parameters and its cases, and one line in the registry below. Docs: docs/vectors.md.

mod pdn;
mod rcm;
mod rimm;
mod s_ecn;

pub use pdn::{Case as PdnCase, PdnVectorParams};
pub use rcm::{Case as RcmCase, RcmVectorParams};
pub use rimm::{Case as RimmCase, RimmVectorParams};
pub use s_ecn::{Case as SEcnCase, SEcnVectorParams};

use fanin_params::{Cx, Node, Param, Problem, Severity};

/// Role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Setting of the mechanism, constant within a case.
    Setting,
    /// Input of the mechanism in this row.
    Input,
    /// Value that the mechanism has computed or keeps.
    Register,
    /// Decision of the mechanism.
    Output,
}

impl Role {
    /// Name of the role in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Setting => "setting",
            Role::Input => "input",
            Role::Register => "register",
            Role::Output => "output",
        }
    }
}

/// A column: whole numbers of a width in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub role: Role,
    /// Width, the sign included.
    pub bits: u32,
    pub signed: bool,
    pub unit: &'static str,
    pub about: &'static str,
}

impl Column {
    const fn new(name: &'static str, role: Role, bits: u32, unit: &'static str, about: &'static str) -> Self {
        Column { name, role, bits, signed: false, unit, about }
    }

    const fn signed(name: &'static str, role: Role, bits: u32, unit: &'static str, about: &'static str) -> Self {
        Column { name, role, bits, signed: true, unit, about }
    }

    /// True if `value` fits into the column.
    pub fn holds(&self, value: i128) -> bool {
        let magnitude = self.bits - u32::from(self.signed);
        let low = if self.signed { -(1i128 << magnitude) } else { 0 };
        (low..1i128 << magnitude).contains(&value)
    }
}

/// Rows that start from the mechanism's state before the first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Name of the case, for example `pairs`.
    pub case: &'static str,
    /// One value for each setting.
    pub settings: Vec<i64>,
    /// One value for each column.
    pub rows: Vec<Vec<i64>>,
}

/// The vectors of one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors {
    pub mechanism: &'static str,
    /// Every case that was asked for, with its purpose.
    pub cases: Vec<(&'static str, String)>,
    pub settings: &'static [Column],
    pub columns: &'static [Column],
    pub sequences: Vec<Sequence>,
}

macro_rules! registry {
    ($( $name:literal => $module:ident, )*) => {
        /// Every mechanism that has vectors.
        pub const VECTORS: &[&str] = &[$($name),*];

        /// Test vectors of the mechanism `name`, by its parameters.
        ///
        /// # Errors
        /// An unknown mechanism; everything that is wrong with the parameters.
        pub fn vectors(name: &str, params: &Node) -> Result<Vectors, Vec<Problem>> {
            let mut cx = Cx::new();
            let made = match name {
                $( $name => Param::parse(params, &mut cx).map(|params| $module::vectors(&params)), )*
                _ => {
                    let given = Node::from(fanin_params::Value::Text(name.to_string()));
                    cx.unknown(Some(&given), "mechanism with test vectors", name, VECTORS);
                    None
                }
            };
            let problems = cx.into_problems();
            made.filter(|_| problems.iter().all(|p| p.severity != Severity::Error)).ok_or(problems)
        }
    };
}

registry! {
    "pdn" => pdn,
    "rcm" => rcm,
    "rimm" => rimm,
    "s-ecn" => s_ecn,
}

#[cfg(test)]
mod tests;
