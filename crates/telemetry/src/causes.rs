//! Names by which table `segments` tells why a packet was sent: one list for writers and readers.

macro_rules! named {
    ($(#[doc = $doc:expr])* pub enum $name:ident { $( $(#[doc = $variant_doc:expr])* $text:literal => $variant:ident, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant, )* }

        impl $name {
            /// All entries of the list.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];

            /// Name of the entry in tables.
            pub const fn name(self) -> &'static str {
                match self { $( $name::$variant => $text, )* }
            }

            /// Entry of this name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $( $text => Some($name::$variant), )* _ => None }
            }
        }
    };
}

named! {
    /// Event that the sender of a packet had waited for (`cause`).
    pub enum Cause {
        /// The application wrote, or opened the connection.
        "application" => Application,
        /// A packet arrived.
        "packet" => Packet,
        /// A switch notified the sender of a drop.
        "notification" => Notification,
        /// The sender had its transmission opportunity at the NIC, and nothing else is known.
        "turn" => Turn,
        /// The retransmission timer expired.
        "rto" => Rto,
        /// The timer of a tail loss probe expired.
        "tlp" => Tlp,
        /// The reordering timer of RACK expired.
        "reordering" => Reordering,
        /// The timer that probes a closed receive window expired.
        "window_probe" => WindowProbe,
        /// The timer of a delayed acknowledgment expired.
        "delayed_ack" => DelayedAck,
        /// The pacing timer expired.
        "pacing" => Pacing,
    }
}

named! {
    /// Limit that had kept data from being sent before (`limit`; empty for other packets).
    pub enum Limit {
        /// The application had written nothing to send.
        "application" => Application,
        /// The connection was not open.
        "handshake" => Handshake,
        /// The congestion window was used up.
        "cwnd" => CongestionWindow,
        /// The receive window was used up.
        "receive_window" => ReceiveWindow,
        /// Fast recovery was under way.
        "recovery" => Recovery,
        /// Loss recovery after a timeout.
        "loss" => Loss,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_again_and_documented() {
        let page = include_str!("../../../docs/results.md");
        for cause in Cause::ALL {
            assert_eq!(Cause::of(cause.name()), Some(*cause));
            assert!(page.contains(&format!("`{}`", cause.name())), "{cause:?}");
        }
        for limit in Limit::ALL {
            assert_eq!(Limit::of(limit.name()), Some(*limit));
            assert!(page.contains(&format!("`{}`", limit.name())), "{limit:?}");
        }
        assert_eq!((Cause::of(""), Limit::of("")), (None, None));
    }
}
