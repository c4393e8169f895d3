//! Commands that finish a run whose storage, or one of whose hosts, did not answer.

use std::path::Path;

use iolab_analysis::consent::NeededConsent;

/// Advice for storage that has not answered, after its repair. A device that comes back may have another name, and its
/// former name another disk. So no command to paste contains the consent to the loss of data.
pub(super) fn advice_after_silence(
    run_file: &Path,
    processes: usize,
    consent: NeededConsent,
) -> String {
    let harmless = NeededConsent {
        destroys_data: false,
        ..consent
    };
    let check = match consent.destroys_data {
        true => {
            "Check with lsblk that the target is still the same disk; then add --destroy-data to this command, which finishes the run: "
        }
        false => "Finish the run with: ",
    };
    let command = harmless.resume_command(&[&run_file.to_string_lossy()], processes);
    format!("{check}{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: NeededConsent = NeededConsent {
        destroys_data: true,
        changes_system: true,
        runs_programs: false,
    };

    #[test]
    fn a_shell_reads_run_files_as_single_words() {
        let command = |file: &str| NeededConsent::default().resume_command(&[file], 1);
        assert_eq!(command("old run.iolab"), "iolab resume 'old run.iolab'");
        assert_eq!(command("$(touch X)"), "iolab resume '$(touch X)'");
        assert_eq!(
            ALL.resume_command(&["r.iolab"], 2),
            "mpirun -n 2 iolab resume r.iolab --destroy-data --change-system"
        );
    }

    #[test]
    fn no_command_to_paste_after_silence_destroys_data() {
        let advice = |consent| advice_after_silence(Path::new("r.iolab"), 1, consent);
        assert_eq!(
            advice(ALL),
            "Check with lsblk that the target is still the same disk; then add --destroy-data to this command, which finishes the run: iolab resume r.iolab --change-system"
        );
        assert_eq!(
            advice(NeededConsent::default()),
            "Finish the run with: iolab resume r.iolab"
        );
    }
}
