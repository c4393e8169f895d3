//! The method of a study in one paragraph, and the works that it cites.

/// The paragraph, in LaTeX.
pub(super) const METHOD: &str = r"The unit of replication is the trial: requests inside one trial share its state and are no independent samples. All cells are visited in randomised complete blocks from a recorded seed~\cite{fisher1935}. The first trial of each cell is a warm-up and is excluded; outliers are kept. Repetition ends when half of the 95\,\% interval of the median, over the median, reaches the precision goal, or with the budget; it never ends on a p value. A cell is summarised by its median with the order-statistic interval~\cite{conover1999}; the mean has Student's interval~\cite{student1908}. Ratios of medians have intervals on the logarithmic scale~\cite{price2002}. Differences are tested by Welch's t test~\cite{welch1947}, equivalence by two one-sided tests~\cite{schuirmann1987}, and families of tests are corrected by Holm's method~\cite{holm1979}. Drift over the trials is tested by Mann and Kendall's test~\cite{mann1945}. Latency is recorded for each request in a histogram with three significant digits~\cite{tene}; in a closed loop it is the service time, at a given rate the response time~\cite{schroeder2006}. For each trial, the bytes requested are compared with the process account, the device counters and the page cache; only numbers whose bytes the device served are called the device's.";

/// The works, for BibTeX.
pub(super) fn bib() -> Vec<u8> {
    BIB.as_bytes().to_vec()
}

const BIB: &str = r"@book{fisher1935,
  author = {R. A. Fisher}, title = {The Design of Experiments}, publisher = {Oliver and Boyd}, year = {1935}
}
@book{conover1999,
  author = {W. J. Conover}, title = {Practical Nonparametric Statistics}, edition = {3rd}, publisher = {Wiley}, year = {1999}
}
@article{student1908,
  author = {Student}, title = {The Probable Error of a Mean}, journal = {Biometrika}, volume = {6}, pages = {1--25}, year = {1908}
}
@article{welch1947,
  author = {B. L. Welch}, title = {The Generalization of `Student's' Problem when Several Different Population Variances are Involved}, journal = {Biometrika}, volume = {34}, pages = {28--35}, year = {1947}
}
@article{price2002,
  author = {R. M. Price and D. G. Bonett}, title = {Distribution-Free Confidence Intervals for Difference and Ratio of Medians}, journal = {Journal of Statistical Computation and Simulation}, volume = {72}, pages = {119--124}, year = {2002}
}
@article{schuirmann1987,
  author = {D. J. Schuirmann}, title = {A Comparison of the Two One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average Bioavailability}, journal = {Journal of Pharmacokinetics and Biopharmaceutics}, volume = {15}, pages = {657--680}, year = {1987}
}
@article{holm1979,
  author = {S. Holm}, title = {A Simple Sequentially Rejective Multiple Test Procedure}, journal = {Scandinavian Journal of Statistics}, volume = {6}, pages = {65--70}, year = {1979}
}
@article{mann1945,
  author = {H. B. Mann}, title = {Nonparametric Tests Against Trend}, journal = {Econometrica}, volume = {13}, pages = {245--259}, year = {1945}
}
@misc{tene,
  author = {G. Tene}, title = {HdrHistogram: A High Dynamic Range Histogram}, howpublished = {http://hdrhistogram.org}
}
@inproceedings{schroeder2006,
  author = {B. Schroeder and A. Wierman and M. Harchol-Balter}, title = {Open Versus Closed: A Cautionary Tale}, booktitle = {Proceedings of the 3rd USENIX Symposium on Networked Systems Design and Implementation (NSDI)}, year = {2006}
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_cited_can_be_looked_up() {
        let cited: Vec<&str> = METHOD
            .split("\\cite{")
            .skip(1)
            .filter_map(|rest| rest.split('}').next())
            .collect();
        assert_eq!(cited.len(), BIB.matches("\n}").count());
        for key in cited {
            assert!(BIB.contains(&format!("{{{key},")), "{key}");
        }
    }
}
