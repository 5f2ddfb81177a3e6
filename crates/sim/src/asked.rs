//! What a Redis client asks for at a time: one command, or several as one, in a transaction or in a script.

use crate::resp_client::{Received, command_of, is_answer_to, reply_of};
use crate::tally::Occurrence;
use crate::workload::{ClientCommand, put_parsed};
use syros_protocol::client::Outcome;
use syros_protocol::message::{Body, Refusal};
use syros_types::Database;

/// How the commands of one operation are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One command by itself.
    Single,
    /// Between MULTI and EXEC.
    Transaction,
    /// As a script.
    Script(ScriptForm),
}

/// A script that carries out the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptForm {
    /// It says which keys it touches; else it touches any.
    pub(crate) declares: bool,
    /// It is run by its name, if that is known.
    pub(crate) by_name: bool,
    /// What it does in the end.
    pub(crate) end: ScriptEnd,
    /// No other script has this number.
    pub(crate) number: u64,
}

/// What a script does when it has carried out its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptEnd {
    /// It returns what they answered.
    Returns,
    /// It fails, and leaves what it has done.
    Fails,
    /// It goes on until it has no fuel, and all is undone.
    Exhausts,
    /// It touches a key that it does not declare, and all is undone, if scripts must declare what they touch.
    Strays,
}

/// What a client asks for at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The commands; none, if they are undone in the end.
    pub(crate) steps: Vec<ClientCommand>,
    /// Those that are undone.
    pub(crate) undone: Vec<ClientCommand>,
    pub(crate) form: Form,
}

/// The script of all clients: its arguments are a tag, the number of commands, their words, each with their number before
/// them, and what it does in the end. If memory is short for a command, it ends there: nothing has been done, then.
pub(crate) const SCRIPT: &str = "\
local replies, at = {}, 3
for command = 1, tonumber(ARGV[2]) do
  local words = {}
  for word = 1, tonumber(ARGV[at]) do words[word] = ARGV[at + word] end
  at = at + 1 + #words
  local reply = redis.pcall(unpack(words))
  if type(reply) == 'table' and reply.err and string.sub(reply.err, 1, 4) == 'OOM ' then return reply end
  replies[command] = reply
end
if ARGV[at] == 'fail' then error('as it was told') end
while ARGV[at] == 'go on' do end
if ARGV[at] == 'stray' then redis.pcall('SET', 'a key that nobody has declared', 'x') end
return replies";

/// What has become of what a client asked for.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// It has ended.
    Outcome(Outcome),
    /// Nothing has been done, for this reason.
    Undone(Occurrence),
}

impl Asked {
    /// One command.
    pub(crate) fn single(step: ClientCommand) -> Self {
        Self { steps: vec![step], undone: Vec::new(), form: Form::Single }
    }

    fn all(&self) -> impl Iterator<Item = &ClientCommand> {
        self.steps.iter().chain(&self.undone)
    }

    /// The database of all keys.
    pub(crate) fn database(&self) -> Database {
        self.all().next().map_or(Database::FIRST, ClientCommand::database)
    }

    /// A word that no other script has among its arguments.
    pub(crate) fn tag(&self) -> Option<Vec<u8>> {
        match &self.form {
            Form::Script(script) => Some(format!("script {}.", script.number).into_bytes()),
            Form::Single | Form::Transaction => None,
        }
    }

    /// How many replies come before the one that counts.
    pub(crate) fn replies_before(&self) -> usize {
        if self.form == Form::Transaction { 1 + self.steps.len() } else { 0 }
    }

    /// Appends it as bytes; the name of the script is this, if the process knows it. What a server makes of it: operations,
    /// encoded.
    pub(crate) fn put(&self, name: Option<&[u8]>, out: &mut Vec<u8>) -> Vec<u8> {
        let mut encoding = Vec::new();
        let mut put = |words: Vec<Vec<u8>>| {
            command_of(&words.iter().map(Vec::as_slice).collect::<Vec<_>>(), out);
        };
        match &self.form {
            Form::Script(script) => put(self.words_of_script(script, name)),
            Form::Single | Form::Transaction => {
                let is_transaction = self.form == Form::Transaction;
                if is_transaction {
                    put(vec![b"MULTI".to_vec()]);
                }
                for step in &self.steps {
                    put(step.words());
                    put_parsed(&step.words(), step.database(), &mut encoding);
                }
                if is_transaction {
                    put(vec![b"EXEC".to_vec()]);
                }
            }
        }
        encoding
    }

    fn words_of_script(&self, script: &ScriptForm, name: Option<&[u8]>) -> Vec<Vec<u8>> {
        let number = |number: usize| number.to_string().into_bytes();
        let mut keys = Vec::new();
        if script.declares {
            self.all()
                .for_each(|step| step.for_each_key(&mut |key| keys.push(crate::workload::key_name(key))));
        }
        let mut words = match name.filter(|_| script.by_name) {
            Some(name) => vec![b"EVALSHA".to_vec(), name.to_vec()],
            None => vec![b"EVAL".to_vec(), SCRIPT.as_bytes().to_vec()],
        };
        words.push(number(keys.len()));
        words.extend(keys);
        words.extend([self.tag().unwrap_or_default(), number(self.all().count())]);
        for step in self.all() {
            let of_step = step.words();
            words.push(number(of_step.len()));
            words.extend(of_step);
        }
        let end: &[u8] = match script.end {
            ScriptEnd::Returns => b"return",
            ScriptEnd::Fails => b"fail",
            ScriptEnd::Exhausts => b"go on",
            ScriptEnd::Strays => b"stray",
        };
        words.push(end.to_vec());
        words
    }

    /// How it ended, by the reply to it.
    ///
    /// # Errors
    /// Nothing gets such an answer.
    pub(crate) fn is_answered(&self, reply: Received) -> Result<Ending, String> {
        if let ([step], Form::Single) = (self.steps.as_slice(), &self.form) {
            return is_answer_to(step, reply).map(Ending::Outcome);
        }
        match reply {
            Received::Array(replies) if replies.len() == self.steps.len() && self.undone.is_empty() => {
                let mut body = Vec::new();
                for (step, reply) in self.steps.iter().zip(replies) {
                    if let Received::Error(text) = &reply {
                        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
                        if !step.may_fail_with(code) {
                            return Err(format!("{step:?} of {self:?} is answered {}", text.escape_ascii()));
                        }
                    }
                    reply_of(reply).encode(&mut body);
                }
                Ok(Ending::Outcome(Outcome::Reply(Body::from(body))))
            }
            Received::Error(text) => self.is_refused(&text),
            other => Err(format!("{self:?} is answered {other:?}")),
        }
    }

    fn is_refused(&self, text: &[u8]) -> Result<Ending, String> {
        const UNDONE: Ending = Ending::Undone(Occurrence::ScriptUndone);
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let end = match &self.form {
            Form::Script(script) => Some(script.end),
            Form::Single | Form::Transaction => None,
        };
        Ok(Ending::Outcome(match code {
            b"UNKNOWN" => Outcome::Unknown,
            b"TIMEOUT" | b"OVERLOADED" => Outcome::TimedOut,
            b"NOQUORUM" => Outcome::NoQuorum,
            b"EXECABORT" if self.form == Form::Transaction => Outcome::Refused(Refusal::Overloaded),
            b"OOM" if end.is_some() => {
                return Ok(Ending::Undone(Occurrence::ScriptWithoutMemory));
            }
            b"OOM" => Outcome::Refused(Refusal::OutOfMemory),
            // A node that did not know the script did not know what it touches.
            b"NOSCRIPT" | b"TRYAGAIN" if end.is_some() => return Ok(UNDONE),
            b"TRYAGAIN" => Outcome::Refused(Refusal::Overloaded),
            _ if end == Some(ScriptEnd::Fails) && has(b"as it was told") => Outcome::Done,
            _ if end == Some(ScriptEnd::Exhausts) && has(b"units of fuel") => return Ok(UNDONE),
            _ if end == Some(ScriptEnd::Strays) && has(b"declare") => return Ok(UNDONE),
            _ => return Err(format!("{self:?} is answered {}", text.escape_ascii())),
        }))
    }
}
