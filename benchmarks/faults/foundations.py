"""Faults of what everything stands on: `_support`, `kernels`, `confidence` and `posterior`."""

from benchmarks.faults.fault import Fault

__all__ = ["CONFIDENCE", "KERNELS", "POSTERIOR", "SUPPORT"]

ARRAYS = ("_support/test_arrays.py",)
FILES = ("_support/test_files.py",)
LINALG = ("posterior/test_linalg.py",)
STATE = ("posterior/test_gaussian_state.py",)

SUPPORT = (
    Fault(
        "a strict bound lets the bound itself in",
        "_support/checks.py",
        " or (strict and number == low)",
        "",
        ARRAYS,
    ),
    Fault("half a thing is counted", "_support/checks.py", "if number != int(number):", "if False:", ARRAYS),
    Fault(
        "a truth value is a number",
        "_support/checks.py",
        "isinstance(value, bool | np.bool_ | ",
        "isinstance(value, ",
        ARRAYS,
    ),
    Fault(
        "a point passes that is finite in one column",
        "_support/arrays.py",
        "~torch.isfinite(T).all(1)",
        "~torch.isfinite(T).any(1)",
        ARRAYS,
    ),
    Fault(
        "fewer values than points pass",
        "_support/arrays.py",
        "(n is not None and T.shape[0] != n)",
        "(n is not None and T.shape[0] > n)",
        ARRAYS,
    ),
    Fault(
        "the caller's memory is shared",
        "_support/arrays.py",
        "torch.tensor(np.ascontiguousarray(array, dtype=np.float64), device=device)",
        "torch.from_numpy(np.asarray(array, dtype=np.float64))",
        ARRAYS,
    ),
    Fault(
        "an array is read twice from a file",
        "_support/files.py",
        "if number in self._taken:",
        "if False:",
        FILES,
    ),
    Fault("a file of any kind is loaded", "_support/files.py", 'if document["kind"] != kind:', "if False:", FILES),
    Fault(
        "bytes behind an array are ignored",
        "_support/files.py",
        "dtype.itemsize != len(content) - stream.tell()",
        "dtype.itemsize > len(content) - stream.tell()",
        FILES,
    ),
    Fault(
        "compressed members are unfolded",
        "_support/files.py",
        "if any(member.compress_type != zipfile.ZIP_STORED for member in members):",
        "if False:",
        FILES,
    ),
    Fault(
        "NaN loses its payload",
        "_support/files.py",
        'if math.isfinite(value) else {"$float"',
        'if True else {"$float"',
        FILES,
    ),
    Fault(
        "a file is not on the disk before it is renamed", "_support/files.py", "os.fsync(file.fileno())", "pass", FILES
    ),
    Fault("a saved file loses its permissions", "_support/files.py", "os.chmod(temporary, mode)", "pass", FILES),
    Fault("a failed save leaves its temporary file", "_support/files.py", "os.unlink(temporary)", "pass", FILES),
    Fault(
        "the caller's threads are not given back",
        "_support/threads.py",
        "    finally:\n        torch.set_num_threads(n)",
        "    finally:\n        pass",
        LINALG,
    ),
    Fault(
        "a kernel may return too many columns",
        "_support/foreign_kernels.py",
        "if values.shape != shape:",
        "if values.shape[0] != shape[0]:",
        ("test_kernels.py",),
    ),
    Fault(
        "a GPyTorch kernel is fitted in the user's hands",
        "_support/foreign_kernels.py",
        "_Dense(copy.deepcopy(kernel))",
        "_Dense(kernel)",
        ("test_kernels.py",),
    ),
)

KERNELS = (
    Fault(
        "Matern-5/2 has another polynomial where gradients are wanted",
        "kernels.py",
        "1.0 + a + a * a / 3.0 if",
        "1.0 + a + a * a / 2.0 if",
        ("test_kernels.py",),
    ),
    Fault(
        "Matern-5/2 has another polynomial without gradients",
        "kernels.py",
        "value=1.0 / 3.0",
        "value=1.0 / 2.0",
        ("test_kernels.py",),
    ),
    Fault(
        "a category costs the less, the shorter its lengthscale",
        "kernels.py",
        "torch.exp(-torch.exp(-log_l))",
        "torch.exp(-torch.exp(log_l))",
        ("test_kernels.py",),
    ),
    Fault(
        "Hamming lengthscales and outputscale change places",
        "kernels.py",
        "log_hamming=theta[k : k + c], log_outputscale=theta[k + c])",
        "log_hamming=theta[k + 1 : k + c + 1], log_outputscale=theta[k])",
        ("test_kernels.py",),
    ),
    Fault(
        "the prior of lengthscales is wider",
        "kernels.py",
        ".sum() / (2.0 * 3.0)",
        ".sum() / (2.0 * 9.0)",
        ("test_kernels.py",),
    ),
    Fault(
        "the lengthscale's density is taken for that of its logarithm",
        "kernels.py",
        "+ 0.5 * math.log(max(n, 1)) - 3.0,",
        "+ 0.5 * math.log(max(n, 1)),",
        ("test_kernels.py",),
    ),
    Fault(
        "the diagonal of a kernel matrix is what rounding makes of it",
        "kernels.py",
        "return torch.diagonal_scatter(K, d, dim1=-2, dim2=-1)",
        "return K",
        ("test_kernels.py",),
    ),
    Fault("negative prior variances pass", "kernels.py", " & (d >= 0)).all()", ").all()", ("test_kernels.py",)),
)

CONFIDENCE = (
    Fault(
        "delta counts once",
        "confidence.py",
        "math.sqrt(gain + 2.0 * log_delta)",
        "math.sqrt(gain + log_delta)",
        ("test_confidence.py",),
    ),
    Fault(
        "the width is not divided by the noise",
        "confidence.py",
        "return radius / math.sqrt(p.lam)",
        "return radius",
        ("test_confidence.py",),
    ),
    Fault(
        "Srinivas' width forgets the square of t",
        "confidence.py",
        "max(progress.t, 1) ** 2",
        "max(progress.t, 1)",
        ("test_confidence.py",),
    ),
    Fault(
        "Chowdhury's width lacks its 1",
        "confidence.py",
        "(gamma + 1.0 + math.log",
        "(gamma + math.log",
        ("test_confidence.py",),
    ),
    Fault(
        "a batch widens beyond its budget",
        "confidence.py",
        "math.sqrt(min(1.0 + progress.batch_leverage, self.leverage_budget))",
        "math.sqrt(1.0 + progress.batch_leverage)",
        ("test_confidence.py",),
    ),
    Fault(
        "the running form holds for any accuracy",
        "confidence.py",
        'if self.form == "running" and self.epsilon > 0.5:',
        "if False:",
        ("test_confidence.py",),
    ),
    Fault("oversampling divides by eps once", "confidence.py", "/ epsilon**2", "/ epsilon", ("test_confidence.py",)),
)

POSTERIOR = (
    Fault(
        "no jitter is tried",
        "posterior/linalg.py",
        "JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)",
        "JITTERS = (0.0,)",
        LINALG,
    ),
    Fault(
        "jitter does not know the matrix' size",
        "posterior/linalg.py",
        "device=A.device) * (jitter * scale)",
        "device=A.device) * jitter",
        LINALG,
    ),
    Fault(
        "eigenvalues of rounding are inverted",
        "posterior/linalg.py",
        "keep = eigenvalues > top * m * torch.finfo(K.dtype).eps",
        "keep = eigenvalues > 0.0",
        ("posterior/test_linalg.py", "posterior/features/test_nystrom.py"),
    ),
    Fault(
        "a new feature keeps what the old ones say",
        "posterior/linalg.py",
        "out[:m, r] = -(W @ z) / s",
        "out[:m, r] = (W @ z) / s",
        LINALG,
    ),
    Fault(
        "a bordered inverse has another sign",
        "posterior/linalg.py",
        "out[k, :m] = -p / s",
        "out[k, :m] = p / s",
        LINALG,
    ),
    Fault(
        "a rank-one step is too long",
        "posterior/linalg.py",
        "c = 1.0 / (root * (1.0 + root))",
        "c = 1.0 / (1.0 + root)",
        LINALG,
    ),
    Fault(
        "a downdate forgets its denominator",
        "posterior/linalg.py",
        "d = delta / (1.0 - delta * q)",
        "d = delta",
        LINALG,
    ),
    Fault(
        "0.0 and -0.0 are two points",
        "posterior/observations.py",
        "(X.detach().cpu() + 0.0).numpy()",
        "X.detach().cpu().numpy()",
        ("posterior/test_observations.py",),
    ),
    Fault(
        "a weight does not reach the sum of squares",
        "posterior/observations.py",
        "float(weight * y @ y)",
        "float(y @ y)",
        ("posterior/test_observations.py",),
    ),
    Fault(
        "a refused observation stays in the sum of squares",
        "posterior/observations.py",
        "self.total, self.Y2 = total, Y2\n\n        return restore",
        "self.total = total\n\n        return restore",
        ("posterior/test_observations.py",),
    ),
    Fault(
        "the residual is forgotten",
        "posterior/model.py",
        "return Z @ self.w, self.features.residual(X, Z) + self.lam * (P * P).sum(1)",
        "return Z @ self.w, self.lam * (P * P).sum(1)",
        ("posterior/test_model.py",),
    ),
    Fault(
        "a covariance is in units of the noise",
        "posterior/model.py",
        "self.features.residual_covariance(X, Z) + self.lam * (P @ P.T)",
        "self.features.residual_covariance(X, Z) + P @ P.T",
        ("posterior/test_model.py",),
    ),
    Fault(
        "a collapsed posterior knows more than the model",
        "posterior/model.py",
        "(1.0 - self.lam * e).clamp_min(0.0)",
        "(1.0 - 0.0 * e).clamp_min(0.0)",
        ("posterior/test_model.py",),
    ),
    Fault(
        "samples take the factor's columns for rows",
        "posterior/model.py",
        "eps @ L.T",
        "eps @ L",
        ("posterior/test_model.py",),
    ),
    Fault(
        "repeats do not count",
        "posterior/gaussian_state.py",
        "V.addmm_(B.T, B * n[i : i + BLOCK, None])",
        "V.addmm_(B.T, B)",
        STATE,
    ),
    Fault(
        "a block of imagined observations moves the mean",
        "posterior/gaussian_state.py",
        "self.b + Z.T @ (Z @ self.w), self.lam)",
        "self.b, self.lam)",
        STATE,
    ),
    Fault(
        "a lie pulls the other way", "posterior/gaussian_state.py", "(lie - Z @ self.w)", "(Z @ self.w - lie)", STATE
    ),
    Fault(
        "the log determinant is not one of V / lam",
        "posterior/gaussian_state.py",
        "- len(self.w) * math.log(self.lam)",
        "+ len(self.w) * math.log(self.lam)",
        STATE,
    ),
    Fault(
        "a table's residuals lose the wrong column",
        "posterior/features/table.py",
        "lost[: self._u] = c * c",
        "lost[: self._u] = c",
        ("posterior/features/test_table.py",),
    ),
    Fault(
        "a table writes into its copy",
        "posterior/features/table.py",
        "self._residual = (self._residual - lost).clamp_min(0.0)",
        "self._residual.sub_(lost).clamp_min_(0.0)",
        ("posterior/features/test_table.py",),
    ),
    Fault(
        "a residual falls below zero",
        "posterior/features/nystrom.py",
        "return (self.kernel.diag(X) - (Z * Z).sum(-1)).clamp_min(0.0)",
        "return self.kernel.diag(X) - (Z * Z).sum(-1)",
        ("posterior/features/test_nystrom.py",),
    ),
    Fault(
        "Fourier features ignore the prior variance",
        "posterior/features/fourier.py",
        "math.sqrt(self.outputscale / self.omega.shape[0])",
        "math.sqrt(1.0 / self.omega.shape[0])",
        ("posterior/features/test_fourier.py",),
    ),
    Fault(
        "Matern's frequencies have light tails",
        "posterior/features/fourier.py",
        "omega *= np.sqrt(nu2 / rng.chisquare(nu2, size=(n_frequencies, 1)))",
        "omega *= np.sqrt(rng.chisquare(nu2, size=(n_frequencies, 1)) / nu2)",
        ("posterior/features/test_fourier.py",),
    ),
)
