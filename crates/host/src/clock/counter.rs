//! The processor's counter that a program reads without the kernel: the time-stamp counter of x86-64, the
//! virtual count of ARM's generic timer. Other architectures have none that iolab knows.
//! Sources: Intel SDM vol. 2A and 3B, AMD APM vol. 3, Arm Architecture Reference Manual (CNTVCT_EL0, CNTFRQ_EL0).

#[cfg(target_arch = "aarch64")]
pub(super) use arm::*;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    /// Short name.
    pub(in super::super) const NAME: &str = "tsc";
    /// Name within a sentence.
    pub(in super::super) const TITLE: &str = "time-stamp counter";
    /// The tracefs clock that counts the same ticks; `None` where the kernel has none.
    pub(in super::super) const TRACE_CLOCK: Option<&str> = Some("x86-tsc");

    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        // SAFETY: rdtsc exists on every x86-64 CPU and only reads a register.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Whether the counter runs at a constant rate.
    ///
    /// # Errors
    /// The reason why the rate may vary.
    pub(in super::super) fn check() -> Result<(), &'static str> {
        use std::arch::x86_64::__cpuid;
        // CPUID 8000_0007h, EDX bit 8 (AMD APM vol. 3, Intel SDM vol. 2A).
        let is_invariant =
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
        if is_invariant {
            Ok(())
        } else {
            Err("the CPU has no invariant time-stamp counter")
        }
    }

    /// Whether the kernel has stopped trusting the counter, judged by the clock sources that it offers. Without
    /// `hpet` the reason can be another one: a hypervisor's clock makes the kernel leave the counter out.
    pub(in super::super) fn is_given_up(available: &[&str]) -> bool {
        !available.contains(&NAME) && available.contains(&"hpet")
    }

    /// Counter rate that the processor states, Hz: not available on all x86-64 processors.
    pub(in super::super) fn stated_hz() -> Option<f64> {
        None
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::asm;

    /// Short name.
    pub(in super::super) const NAME: &str = "cntvct";
    /// Name within a sentence.
    pub(in super::super) const TITLE: &str = "generic timer";
    /// The tracefs clock that counts the same ticks; `None` where the kernel has none.
    pub(in super::super) const TRACE_CLOCK: Option<&str> = None;

    /// Current count. The barrier keeps the processor from reading the count before earlier instructions
    /// finish, as in the kernel's own reader. Where a flaw of the timer needs a workaround, the kernel traps
    /// the instruction and answers it.
    #[inline(always)]
    pub(in super::super) fn read() -> u64 {
        let count: u64;
        // SAFETY: Linux lets programs read this register on every ARM64 CPU, and reading it changes nothing.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack)) };
        count
    }

    /// Whether the counter runs at a constant rate: the architecture promises it, whatever the frequency of the
    /// cores.
    ///
    /// # Errors
    /// None.
    pub(in super::super) fn check() -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether the kernel does not use the timer, judged by the clock sources that it offers.
    pub(in super::super) fn is_given_up(available: &[&str]) -> bool {
        !available.contains(&"arch_sys_counter")
    }

    /// Counter rate that the firmware states, Hz.
    pub(in super::super) fn stated_hz() -> Option<f64> {
        let hz: u64;
        // SAFETY: as for the count; firmware has written the register, or left it at 0.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags))
        };
        (hz > 0).then_some(hz as f64)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    /// Short name.
    pub(in super::super) const NAME: &str = "counter";
    /// Name within a sentence.
    pub(in super::super) const TITLE: &str = "counter of the CPU";
    /// The tracefs clock that counts the same ticks; `None` where the kernel has none.
    pub(in super::super) const TRACE_CLOCK: Option<&str> = None;

    /// Never used: see [`check`].
    pub(in super::super) fn read() -> u64 {
        0
    }

    /// # Errors
    /// Always.
    pub(in super::super) fn check() -> Result<(), &'static str> {
        Err("iolab reads no counter of this kind of CPU")
    }

    pub(in super::super) fn is_given_up(_available: &[&str]) -> bool {
        true
    }

    pub(in super::super) fn stated_hz() -> Option<f64> {
        None
    }
}
