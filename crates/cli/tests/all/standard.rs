//! Tests of a standard and rounds until they are steady, on a model, in every output.

use serde_json::Value;

use crate::helpers::*;
