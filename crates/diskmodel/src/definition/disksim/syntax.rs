//! The text form of the files: a tree of named values.

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Block(Block),
}

/// Named values in braces.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) kind: String,
    entries: Vec<(String, Value)>,
}

impl Block {
    fn get(&self, key: &str) -> Option<&Value> {
        self.entries
            .iter()
            .find(|entry| entry.0 == key)
            .map(|entry| &entry.1)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        match self.get(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn required(&self, key: &str) -> Result<f64, String> {
        self.number(key)
            .ok_or_else(|| format!("{}: no number for \"{key}\"", self.kind))
    }

    pub(super) fn or_zero(&self, key: &str) -> f64 {
        self.number(key).unwrap_or(0.0)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.or_zero(key) != 0.0
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn block(&self, key: &str) -> Result<&Block, String> {
        match self.get(key) {
            Some(Value::Block(block)) => Ok(block),
            _ => Err(format!("{}: no block \"{key}\"", self.kind)),
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Value] {
        match self.get(key) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    pub(super) fn numbers(&self, key: &str) -> Vec<f64> {
        let number = |value: &Value| {
            if let Value::Number(number) = value {
                Some(*number)
            } else {
                None
            }
        };
        self.list(key).iter().filter_map(number).collect()
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        loop {
            self.rest = self
                .rest
                .trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.find('\n').map_or("", |end| &comment[end..]),
                None => return,
            }
        }
    }

    fn eat(&mut self, mark: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Text up to one of the delimiters.
    fn until(&mut self, marks: &[char]) -> &'a str {
        self.skip();
        let end = self.rest.find(marks).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.trim()
    }

    fn entries(&mut self) -> Result<Vec<(String, Value)>, String> {
        let mut entries = Vec::new();
        while !self.eat('}') {
            if self.rest.is_empty() {
                return Err("a block does not end".into());
            }
            let key = self.until(&['=', '}']).to_string();
            if !self.eat('=') {
                return Err(format!("\"{key}\" has no value"));
            }
            entries.push((key, self.value()?));
        }
        Ok(entries)
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.eat('[') {
            let mut list = Vec::new();
            while !self.eat(']') {
                if self.rest.is_empty() {
                    return Err("a list does not end".into());
                }
                list.push(self.value()?);
            }
            return Ok(Value::List(list));
        }
        let word = self.until(&[',', '{', '}', ']', '[', '\n', '#']);
        if self.eat('{') {
            return Ok(Value::Block(Block {
                kind: word.to_string(),
                entries: self.entries()?,
            }));
        }
        if word.is_empty() {
            return Err(format!(
                "no value before \"{}\"",
                self.rest.chars().take(20).collect::<String>()
            ));
        }
        Ok(word
            .parse()
            .map_or_else(|_| Value::Text(word.to_string()), Value::Number))
    }

    /// The blocks of a file; skips other statements.
    fn blocks(mut self) -> Result<Vec<Block>, String> {
        let mut blocks = Vec::new();
        loop {
            let head = self.until(&['{', '[', ']', '\n']);
            if self.rest.is_empty() {
                return Ok(blocks);
            }
            if self.rest.starts_with('{') {
                self.eat('{');
                let kind = head
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_string();
                blocks.push(Block {
                    kind,
                    entries: self.entries()?,
                });
            } else {
                self.rest = &self.rest[1..];
            }
        }
    }
}

/// All blocks of a file, in order.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    Reader { rest: text }.blocks()
}

/// The first block of a kind.
pub(super) fn find(text: &str, kind: &str) -> Result<Block, String> {
    blocks(text)?
        .into_iter()
        .find(|block| block.kind == kind)
        .ok_or_else(|| format!("no {kind} in the file"))
}
