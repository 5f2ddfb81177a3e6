//! Whether the client may run a command: asked of each command that exists and has a fitting number of words, before it is
//! queued or submitted, and of those of a transaction once more at EXEC if the users have changed meanwhile.

use super::transactions::aborted;
use super::{CommandPipeline, Connection};
use crate::access::{OUTDATED_USERS, Refusal, RefusalContext, Standing, is_local};
use crate::connection_commands::{full_name, split_blind, subcommand_error};
use crate::context::Context;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::queue::Queue;
use core::sync::atomic::Ordering;
use syros_commands::acl::{CheckBudget, Denial, NamedUser, hide_passwords};
use syros_commands::{CommandKind, CommandSpec, Parsed, commands};
use syros_types::{ReadPolicy, WallTime};

/// What a client gets while nobody tells the process who the users are.
pub(crate) const UNKNOWN_USERS: &[u8] =
    b"NOQUORUM the command was not executed: this node cannot reach a majority of the replicas, and \
    does not know the users";

/// What a client gets that has not said who it is.
const NOT_AUTHENTICATED: &[u8] = b"NOAUTH Authentication required.";

/// What a client on another machine gets in protected mode.
const PROTECTED: &[u8] = b"DENIED Syros is running in protected mode because protected mode is enabled and no password is set \
    for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect \
    from external computers, you may adopt one of the following solutions: 1) Set a password for the default user, with \
    'ACL SETUSER default resetpass >...' or 'CONFIG SET requirepass ...' from the loopback interface. 2) Give a new cluster \
    a password with 'password-file' in the configuration file of each node. 3) If no one else can reach the port, disable \
    protected mode with 'protected-mode = false' in the configuration file.";

/// What is said of a transaction when its user has lost a right meanwhile.
const CHANGED: &[u8] = b"EXECABORT Transaction discarded because of: NOPERM ACLs rules changed between the moment the \
    transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: ";

impl Connection {
    /// The process has learned of other users. `asked`: the client has changed them itself, and is to get the reply. True if
    /// the connection ends because its user has been removed.
    pub fn on_users(&mut self, asked: bool) -> bool {
        let pipeline = &mut self.pipeline;
        let is_removed = pipeline.session.login.is_removed(&pipeline.session.shared.users);
        if is_removed && asked {
            pipeline.closing = true;
        } else if is_removed {
            pipeline.cut_off();
        }
        is_removed
    }

    /// The process does not wait for the users any more. True if the connection did.
    pub const fn end_waiting_for_users(&mut self) -> bool {
        core::mem::replace(&mut self.pipeline.awaits_users, false)
    }

    /// The client has shown a certificate that the process believes: it is no stranger in protected mode.
    pub const fn note_certificate(&mut self) {
        self.pipeline.session.login.note_certificate();
    }

    /// True if the client may still be told what is published there, by the users that are known now.
    pub fn may_hear(&mut self, channel: &[u8], is_pattern: bool) -> bool {
        let session = &mut self.pipeline.session;
        match session.login.stand(&session.shared.users, &session.identity.address) {
            Standing::User(_) => session.login.allows_channel(channel, is_pattern),
            _ => false,
        }
    }

    /// True if the client has subscribed to something, and may not do everything.
    #[must_use]
    pub fn is_restricted_subscriber(&self) -> bool {
        let session = &self.pipeline.session;
        session.is_subscriber() && !session.login.is_free(&session.shared.users)
    }
}

impl CommandPipeline {
    /// Why the client may not run the command with this number and these words, if it may not. A read is answered by this
    /// policy, if one is chosen.
    #[inline]
    pub(super) fn forbids(
        &mut self,
        number: Option<usize>,
        words: &[&[u8]],
        policy: Option<ReadPolicy>,
        context: &Context<'_>,
    ) -> Option<Vec<u8>> {
        let users = &self.session.shared.users;
        if self.session.login.is_free(users) && !users.is_outdated() {
            None
        } else {
            self.examine(number, words, policy, context)
        }
    }

    /// The same for a client of whom it is not known that it may do everything.
    #[cold]
    fn examine(
        &mut self,
        number: Option<usize>,
        words: &[&[u8]],
        policy: Option<ReadPolicy>,
        context: &Context<'_>,
    ) -> Option<Vec<u8>> {
        let spec = commands().get(number?)?;
        let full = full_name(spec, words);
        // Whoever may not use a command does not learn which subcommands it has.
        let is_complete = full == spec.name || subcommand_error(spec, words).is_none();
        if !spec.accepts(words.len()) || !is_complete {
            return None;
        }
        self.last_command = Some(full);
        let needs_no_user = spec.flags.contains(&"no_auth");
        let session = &mut self.session;
        match session.login.stand(&session.shared.users, &session.identity.address) {
            Standing::Unknown if needs_no_user || self.is_answered_without_users(spec, words) => None,
            Standing::Unknown => {
                let why = context.unavailable.map_or(UNKNOWN_USERS, |why| why.text().as_bytes());
                Some(why.into())
            }
            Standing::Removed => {
                self.closing = true;
                Some(NOT_AUTHENTICATED.into())
            }
            Standing::Protected => {
                self.closing = true;
                Some(PROTECTED.into())
            }
            Standing::Stranger if needs_no_user => None,
            Standing::Stranger => Some(NOT_AUTHENTICATED.into()),
            // What the user could do once is not told either: it may be able to do it by now.
            Standing::User(_) if self.comes_too_late(spec, policy) => {
                if spec.name != "exec" || self.queue.is_none() {
                    return Some(OUTDATED_USERS.into());
                }
                self.queue = None;
                self.unwatch();
                Some(aborted(OUTDATED_USERS))
            }
            Standing::User(user) => {
                let denial = user.user().admit(words, &mut CheckBudget::default()).err()?;
                let is_queued = self.queue.is_some();
                self.on_denial(&user, &denial, is_queued, context.now);
                Some(denial.error(user.name()))
            }
        }
    }

    /// True if a command has to wait until the users are known.
    pub(super) fn has_to_wait_for_users(&self, words: &[&[u8]], context: &Context<'_>) -> bool {
        if !self.session.shared.users.is_awaited() || context.unavailable.is_some() {
            return false;
        }
        let Some(name) = words.first() else { return false };
        let is_known = self.session.shared.users.epoch() > 0;
        let is = |names: &[&[u8]]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        match syros_commands::lookup(name) {
            // Words before a command.
            // Whose policy is `stale` is served by what is known, if anything is.
            None if is(&[b"READ"]) && words.get(1).is_some_and(|policy| *policy == b"stale") => !is_known,
            None => is(&[b"READ", b"BLIND"]),
            Some(spec) if !spec.accepts(words.len()) || is(&[b"QUIT", b"RESET"]) => false,
            Some(_) if is(&[b"AUTH", b"HELLO"]) => true,
            Some(spec) if !is_known => !self.is_answered_without_users(spec, words),
            Some(spec) => {
                let waits = Self::is_for_group(spec) || !Self::is_harmless(spec, words);
                waits && !self.may_be_stale(spec, self.session.read_policy)
            }
        }
    }

    /// True for what the replicas execute, while the process does not know whether the users have changed.
    fn comes_too_late(&self, spec: &CommandSpec, policy: Option<ReadPolicy>) -> bool {
        self.session.shared.users.is_outdated()
            && Self::is_for_group(spec)
            && !self.may_be_stale(spec, policy)
    }

    /// True for what the replicas execute, and what begins that.
    fn is_for_group(spec: &CommandSpec) -> bool {
        !matches!(spec.kind, CommandKind::Local(_)) || matches!(spec.name, "exec" | "watch")
    }

    /// True for a read that its client lets any replica answer, whatever has changed meanwhile.
    fn may_be_stale(&self, spec: &CommandSpec, policy: Option<ReadPolicy>) -> bool {
        let is_stale =
            policy.map_or_else(|| self.session.shared.reads_are_stale(), |it| it == ReadPolicy::Stale);
        is_stale && spec.flags.contains(&"readonly")
    }

    /// Before the process knows the users, clients on the same machine may ask how it is, and nothing else.
    fn is_answered_without_users(&self, spec: &CommandSpec, words: &[&[u8]]) -> bool {
        Self::is_harmless(spec, words) && is_local(&self.session.identity.address)
    }

    /// True for what neither touches data nor administrates.
    fn is_harmless(spec: &CommandSpec, words: &[&[u8]]) -> bool {
        let full = full_name(spec, words);
        let subcommand = spec.subcommands.iter().find(|subcommand| subcommand.name == full);
        let flags = subcommand.map_or(spec.flags, |subcommand| subcommand.flags);
        matches!(spec.kind, CommandKind::Local(_))
            && !flags.contains(&"admin")
            && !flags.contains(&"pubsub")
            && !flags.contains(&"write")
    }

    /// Remembers a refusal.
    fn on_denial(&mut self, user: &NamedUser, denial: &Denial, is_queued: bool, now: WallTime) {
        let context = if is_queued { RefusalContext::Multi } else { RefusalContext::Toplevel };
        let (object, user) = (denial.object().to_vec(), user.name().to_vec());
        self.log_refusal(Refusal { reason: denial.reason(), context, object, user }, now);
    }

    /// Remembers that AUTH or HELLO has been refused, if it has.
    pub(super) fn note_refused_login(&mut self, now: WallTime) {
        if let Some(refusal) = self.session.refused_login.take() {
            let context = if self.queue.is_some() { RefusalContext::Multi } else { refusal.context };
            self.log_refusal(Refusal { context, ..refusal }, now);
        }
    }

    fn log_refusal(&self, refusal: Refusal, now: WallTime) {
        self.session.statistics.on_refused(refusal.reason);
        let length = self.session.shared.settings.acl_log_length.load(Ordering::Relaxed);
        let mut client = Vec::new();
        self.describe(now, &mut client);
        client.truncate(client.trim_ascii_end().len());
        self.session.shared.acl_log(|log| log.push(refusal, client, now, length));
    }

    /// Why a transaction must not be executed any more, if the users have changed since it was begun.
    pub(super) fn forbids_queued(&mut self, queue: &Queue, now: WallTime) -> Option<Vec<u8>> {
        if queue.users_epoch == self.session.shared.users.epoch() {
            return None;
        }
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::ExecNotChecked) {
            return None;
        }
        let session = &mut self.session;
        let standing = session.login.stand(&session.shared.users, &session.identity.address);
        if session.login.is_free(&session.shared.users) {
            return None;
        }
        let Standing::User(user) = standing else { return Some(NOT_AUTHENTICATED.into()) };
        if queue.checked.len() < queue.commands.len() {
            // Some were queued when the user could do everything.
            return Some([CHANGED, b"the user could do everything when it was queued"].concat());
        }
        let mut budget = CheckBudget::default();
        for words in &queue.checked {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if let Err(denial) = user.user().admit(&words, &mut budget) {
                self.on_denial(&user, &denial, true, now);
                return Some([CHANGED, &denial.sentence(user.name(), false)].concat());
            }
        }
        None
    }

    /// The words of a command that changes users as they are to be executed: with hashes in the place of passwords. CONFIG SET
    /// requirepass becomes the ACL SETUSER that it is. `None`: they stay as they are.
    ///
    /// # Errors
    /// Why the command is refused.
    pub(super) fn without_passwords(
        parsed: &Parsed<'_>,
        words: &[&[u8]],
    ) -> Result<Option<Vec<Vec<u8>>>, &'static str> {
        // A change of users may be blind like any other.
        let (blind, words) = split_blind(words);
        match (parsed, words) {
            (Parsed::Data(operation), [acl, setuser, name, rules @ ..]) if operation.changes_users() => {
                let is_set = setuser.eq_ignore_ascii_case(b"setuser");
                let has_password = |rule: &&[u8]| matches!(rule, [b'>' | b'<', ..]);
                if !is_set || !rules.iter().any(has_password) {
                    return Ok(None);
                }
                let begin = blind.iter().chain([acl, setuser, name]).map(|word| word.to_vec());
                Ok(Some(begin.chain(hide_passwords(rules)).collect()))
            }
            (Parsed::Local(_), [config, set, pairs @ ..])
                if config.eq_ignore_ascii_case(b"config") && set.eq_ignore_ascii_case(b"set") =>
            {
                let is_it = |pair: &[&[u8]]| pair[0].eq_ignore_ascii_case(b"requirepass");
                match pairs {
                    [name, password] if name.eq_ignore_ascii_case(b"requirepass") => {
                        let begin: [&[u8]; 4] = [b"ACL", b"SETUSER", b"default", b"resetpass"];
                        let rule = if password.is_empty() {
                            b"nopass".to_vec()
                        } else {
                            hide_passwords(&[&[b">", *password].concat()]).concat()
                        };
                        Ok(Some(begin.iter().map(|word| word.to_vec()).chain([rule]).collect()))
                    }
                    _ if pairs.chunks_exact(2).any(is_it) => Err(
                        "ERR CONFIG SET failed (possibly related to argument 'requirepass') - it changes the default \
                             user at all nodes, and cannot be set together with settings of one node",
                    ),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }
}
