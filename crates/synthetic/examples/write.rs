//! Writes a run file with a known truth.
//!
//! `cargo run -p iolab-synthetic --example write -- read-size --set bs=4k,64k,1M --curve bs=amortised:64k -o
//! made-up.iolab`, then `iolab table made-up.iolab`. The truth is printed for comparison.

#![allow(clippy::print_stdout, reason = "it prints what is true")]

use std::path::PathBuf;

use clap::Parser;
use iolab_runfile::RunFile;
use iolab_synthetic::{
    At, Change, Common, Curve, Disturbance, Disturber, Evidence, Noise, OverTime, Scenario, WarmUp,
};
use iolab_workload::settings::Setting;
use iolab_workload::units::parse_size;
use iolab_workload::{Error, Result};

#[derive(Parser)]
#[command(about = "Write a run file whose truth is known")]
struct Arguments {
    /// Built-in experiment
    experiment: String,
    /// Change a setting or the levels of a factor (repeatable)
    #[arg(long, value_name = "SETTING=VALUES")]
    set: Vec<String>,
    /// Throughput where every factor is 1, MB/s
    #[arg(long, default_value_t = 100.0)]
    mb_s: f64,
    /// Depend on a setting: SETTING=flat, amortised:HALF, plateau:FROM, cliff:FROM:RATIO or dip:AT:RATIO (repeatable)
    #[arg(long, value_name = "SETTING=CURVE")]
    curve: Vec<String>,
    /// Multiply the throughput of the cells with these levels: bs=4k,threads=2:RATIO (repeatable)
    #[arg(long, value_name = "LEVELS:RATIO")]
    effect: Vec<String>,
    /// Scatter of each cell: none, normal:CV, lognormal:SIGMA, exponential, groups:UPPER:RATIO:SIGMA or stalls:SHARE:RATIO:SIGMA
    #[arg(long, default_value = "lognormal:0.03")]
    noise: String,
    /// Standard deviation of the logarithm that each block shares
    #[arg(long, default_value_t = 0.0)]
    block_sigma: f64,
    /// Change of the logarithm from the first to the last block
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    trend: f64,
    /// Wander from trial to trial: standard deviation of the logarithm, and correlation over one block
    #[arg(long, value_name = "SIGMA:CORRELATION")]
    wander: Option<String>,
    /// Blocks that warm up, and throughput in them over throughput afterwards
    #[arg(long, value_name = "BLOCKS:RATIO", default_value = "1:0.7")]
    warm_up: String,
    /// Change the level of all cells after this share of the measured blocks
    #[arg(long, value_name = "SHARE:RATIO")]
    change: Vec<String>,
    /// Record the course of each trial, with scatter SIGMA from interval to interval and a change after a share of its time
    #[arg(long, value_name = "SIGMA:SHARE:RATIO")]
    over_time: Option<String>,
    /// Disturb a share of the trials: traffic, cpu, page-cache or sleep, then shown, uncounted or hidden (repeatable)
    #[arg(long, value_name = "KIND:SHARE:RATIO:EVIDENCE")]
    disturb: Vec<String>,
    /// Measured trials of each cell
    #[arg(long, default_value_t = 10)]
    trials: u32,
    /// Name of the target
    #[arg(long, default_value = "/data")]
    target: String,
    /// Seed of all that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
}

/// Parts of `a:b:c`, in the expected number.
fn parts<const N: usize>(text: &str) -> Result<[&str; N]> {
    let parts: Vec<&str> = text.split(':').collect();
    let wanted = || Error::usage(format!("'{text}' has not {N} parts between colons"));
    parts.try_into().map_err(|_| wanted())
}

fn number(text: &str) -> Result<f64> {
    let wrong = |_| Error::usage(format!("'{text}' is not a number"));
    text.parse().map_err(wrong)
}

fn curve(text: &str) -> Result<(&'static str, Curve)> {
    let unknown = || Error::usage(format!("'{text}' is not SETTING=CURVE"));
    let (name, curve) = text.split_once('=').ok_or_else(unknown)?;
    let setting = Setting::find(name).ok_or_else(unknown)?;
    let place = |text: &str| parse_size(text).map(|size| size as f64);
    let curve = match *curve.split(':').collect::<Vec<_>>() {
        ["flat"] => Curve::Flat,
        ["amortised", half] => Curve::Amortised { half: place(half)? },
        ["plateau", from] => Curve::Plateau { from: place(from)? },
        ["cliff", from, ratio] => Curve::Cliff {
            from: place(from)?,
            ratio: number(ratio)?,
        },
        ["dip", at, ratio] => Curve::Dip {
            at: place(at)?,
            ratio: number(ratio)?,
        },
        _ => return Err(unknown()),
    };
    Ok((setting.name, curve))
}

fn noise(text: &str) -> Result<Noise> {
    Ok(match *text.split(':').collect::<Vec<_>>() {
        ["none"] => Noise::None,
        ["normal", cv] => Noise::Normal { cv: number(cv)? },
        ["lognormal", sigma] => Noise::Lognormal {
            sigma: number(sigma)?,
        },
        ["exponential"] => Noise::Exponential,
        ["groups", upper, ratio, sigma] => Noise::TwoGroups {
            upper: number(upper)?,
            ratio: number(ratio)?,
            sigma: number(sigma)?,
        },
        ["stalls", share, ratio, sigma] => Noise::Stalls {
            share: number(share)?,
            ratio: number(ratio)?,
            sigma: number(sigma)?,
        },
        _ => return Err(Error::usage(format!("'{text}' is not a noise"))),
    })
}

fn over_time(text: &str) -> Result<OverTime> {
    let [sigma, after, ratio] = parts(text)?;
    Ok(OverTime {
        sigma: number(sigma)?,
        at: At::all(),
        after: number(after)?,
        ratio: number(ratio)?,
        slope: 0.0,
        once_in: None,
    })
}

fn disturbance(text: &str) -> Result<Disturbance> {
    let [by, share, ratio, evidence] = parts(text)?;
    let unknown = |what: &str| Error::usage(format!("'{what}' of '{text}' is unknown"));
    Ok(Disturbance {
        by: match by {
            "traffic" => Disturber::Traffic,
            "cpu" => Disturber::Cpu,
            "page-cache" => Disturber::PageCache,
            "sleep" => Disturber::Sleep,
            other => return Err(unknown(other)),
        },
        at: At::all(),
        share: number(share)?,
        ratio: number(ratio)?,
        evidence: match evidence {
            "shown" => Evidence::Shown,
            "uncounted" => Evidence::NotCounted,
            "hidden" => Evidence::Hidden,
            other => return Err(unknown(other)),
        },
    })
}

fn scenario(arguments: &Arguments) -> Result<Scenario> {
    let changes: Vec<&str> = arguments.set.iter().map(String::as_str).collect();
    let of = Scenario::of(&arguments.experiment, &changes);
    let [wander_sigma, wander_correlation] = match &arguments.wander {
        Some(text) => parts(text)?.map(number),
        None => [Ok(0.0), Ok(0.0)],
    };
    let effect = |text: &String| {
        let [levels, ratio] = parts(text)?;
        Ok((At::levels(levels), number(ratio)?))
    };
    let change = |text: &String| {
        let [after, ratio] = parts(text)?;
        Ok(Change {
            at: At::all(),
            after: number(after)?,
            ratio: number(ratio)?,
        })
    };
    let [blocks, ratio] = parts(&arguments.warm_up)?;
    Ok(Scenario {
        target: arguments.target.clone(),
        mb_s: arguments.mb_s,
        curves: arguments
            .curve
            .iter()
            .map(|text| curve(text))
            .collect::<Result<_>>()?,
        effects: arguments.effect.iter().map(effect).collect::<Result<_>>()?,
        noise: noise(&arguments.noise)?,
        common: Common {
            block_sigma: arguments.block_sigma,
            trend: arguments.trend,
            wander_sigma: wander_sigma?,
            wander_correlation: wander_correlation?,
        },
        warm_up: WarmUp {
            blocks: number(blocks)? as u32,
            ratio: number(ratio)?,
        },
        changes: arguments.change.iter().map(change).collect::<Result<_>>()?,
        over_time: arguments.over_time.as_deref().map(over_time).transpose()?,
        disturbances: arguments
            .disturb
            .iter()
            .map(|text| disturbance(text))
            .collect::<Result<_>>()?,
        trials: arguments.trials,
        ..of
    })
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (record, truth) = scenario(&arguments)?.run(arguments.seed);
    let path = arguments.output.as_path();
    let (run, cells) = (&record.run, &record.cells);
    let mut file = RunFile::create(path, run, &record.environment, &record.experiment, cells)?;
    for sample in &record.samples {
        let own = record.series.iter().find(|own| own.sample == sample.id);
        let series = own.map(|own| own.series.clone()).unwrap_or_default();
        file.add_sample(sample, &[], &series)?;
    }
    for cell in cells {
        if let Some(ended) = cell.ended_by {
            file.set_ended_by(cell.id, Some(ended))?;
        }
    }
    let ended = run.ended_utc.as_deref().unwrap_or_default();
    file.finish(run.status, ended, None)?;
    for cell in &truth.cells {
        let (levels, mb_s) = (cell.cell.levels.join(" "), cell.mb_s);
        println!(
            "{levels}: {mb_s:.3} MB/s in truth, {} of {} trials disturbed",
            cell.disturbed, cell.trials
        );
        for change in &cell.changes {
            println!(
                "    from block {} on {} times as much",
                change.block, change.ratio
            );
        }
    }
    Ok(())
}
