//! Result tables, and the stamps that switches write into packets. A table is a schema: columns with types, units and meanings,
//! declared once, streamed to Parquet.
//!
//! docs/results.md is the contract; a test holds the two together.

mod causes;
mod chunk;
mod column;
mod keep;
mod moment;
mod register;
mod rows;
mod table;

pub use causes::{Cause, Limit};
pub use chunk::{Chunk, RowGroup};
pub use column::{Cell, Name};
pub use keep::{Keep, Keeper, KeptRows, RowNumber, HELD};
pub use moment::{EventClock, Moment};
pub use register::{Registers, Stamp, Unwrap};
pub use rows::{
    CollectiveRow, DropRow, FlowRow, HopRow, HostRow, MessageRow, PauseRow, PortRow, QueryRow, QueueRow, RecordRow, SegmentRow,
    StampRow, StateRow, VoqRow,
};
pub use table::{ColumnInfo, Row, Table, TableError};
