//! Transitions written down once: the machine, the table and the graph are made from them.

/// How long a machine stays in a state before it acts on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Time left of the set-up, which begins with the TCP connection.
    Setup,
    /// Time between two messages.
    Message,
    /// Time to open the data streams.
    Connect,
    /// Work of this end that cannot hang by design; bounded all the same.
    Own,
    /// The run's watchdog.
    Watchdog,
    /// Time for the other end to send no more: the watchdog's if it has streams to send on, that of a message if not.
    PeerEnd,
    /// Time for the receivers to read what is still under way; while this end sends, the watchdog's.
    Drain,
    /// A moment for the other end to say what it knows about a failure.
    Grace,
    /// Time between two requests about names.
    Request,
    /// The session is over.
    Nothing,
}

/// One state as the table and the graph show it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name of the state.
    pub state: &'static str,
    /// How long it lasts at most.
    pub wait: Wait,
    /// What happens in it.
    pub meaning: &'static str,
    /// Inputs and the states they lead to.
    pub exits: &'static [(&'static str, &'static str)],
}

/// Declares the states and inputs of a machine and what leads where.
///
/// Makes two enums: `$State` with `next`, `wait`, `is_over`, `name`, `allowed`, and `$Input` with `word`.
/// Rules under `from_any` hold in every state that has exits and no rule of its own for the input.
macro_rules! state_table {
    (
        $(#[$state_doc:meta])* $State:ident, $(#[$input_doc:meta])* $Input:ident;
        inputs { $($input:ident = $word:literal),+ $(,)? }
        states { $($state:ident [$wait:ident] $meaning:literal { $($on:ident => $to:ident),* $(,)? })+ }
        from_any { $($any:ident => $any_to:ident),* $(,)? }
    ) => {
        $(#[$state_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $State { $(#[doc = $meaning] $state),+ }

        $(#[$input_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $Input { $(#[doc = $word] $input),+ }

        impl $Input {
            /// Its word in tables and error messages; messages go by the names of Yun et al. 2015.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$input => $word),+ }
            }
        }

        impl $State {
            /// Every state with its own rules.
            pub(crate) const ROWS: &'static [$crate::machine::table::Row] = &[$(
                $crate::machine::table::Row {
                    state: stringify!($state),
                    wait: $crate::machine::table::Wait::$wait,
                    meaning: $meaning,
                    exits: &[$(($Input::$on.word(), stringify!($to))),*],
                }
            ),+];
            /// Rules that hold wherever a state has none of its own.
            #[cfg(test)]
            pub(crate) const FROM_ANY: &'static [(&'static str, &'static str)] =
                &[$(($Input::$any.word(), stringify!($any_to))),*];

            /// Where `input` leads; nowhere if it is not valid here.
            #[allow(unreachable_patterns, reason = "a state without exits has no rules")]
            pub const fn next(self, input: $Input) -> Option<Self> {
                match (self, input) {
                    $($((Self::$state, $Input::$on) => Some(Self::$to),)*)+
                    $((state, $Input::$any) if !state.is_over() => Some(Self::$any_to),)*
                    _ => None,
                }
            }

            /// How long it lasts at most.
            pub const fn wait(self) -> $crate::machine::table::Wait {
                match self { $(Self::$state => $crate::machine::table::Wait::$wait),+ }
            }

            /// Whether nothing leads on from here.
            pub const fn is_over(self) -> bool {
                matches!(self.wait(), $crate::machine::table::Wait::Nothing)
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$state => stringify!($state)),+ }
            }

            /// Words of the inputs that are valid here by a rule of this state's own.
            pub fn allowed(self) -> String {
                let row = Self::ROWS.iter().find(|row| row.state == self.name());
                let words: Vec<_> = row.map_or(&[][..], |row| row.exits).iter().map(|(word, _)| *word).collect();
                words.join(", ")
            }
        }
    };
}
pub(crate) use state_table;
