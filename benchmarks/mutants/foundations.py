"""Faults of the lowest layers: `_support`, `kernels` and `confidence`."""

from benchmarks.mutants.fault import Fault

__all__ = ["CONFIDENCE", "KERNELS", "SUPPORT"]

CRAFTED = ("faults/test_crafted_logs.py",)
ARRAYS = ("_support/test_arrays.py",)
REPLACING = ("_support/test_replacing.py",)
FILES = ("_support/test_files_refusals.py",)
SAVING = ("_support/test_files_saving.py",)
STATES = ("_support/test_states.py",)

SUPPORT = (
    Fault(
        "the newest of the kept results is dropped",
        "_support/latest.py",
        "self._kept.pop(next(iter(self._kept)))",
        "self._kept.popitem()",
        ("_support/test_latest.py",),
    ),
    Fault(
        "arrays of a file need not agree on a size",
        "_support/states.py",
        "expected = sizes.setdefault(size, n) if isinstance(size, str) else size",
        "expected = n",
        STATES,
    ),
    Fault(
        "arrays of a file may hold NaN",
        "_support/states.py",
        "np.isfinite(array) & (array >= part.low) & (array <= part.high)",
        "~((array < part.low) | (array > part.high))",
        STATES,
    ),
    Fault(
        "indices of a file may be negative",
        "_support/states.py",
        "if array.size and not (array.min() >= 0 and array.max() < below):",
        "if array.size and not array.max() < below:",
        STATES,
    ),
    Fault(
        "arrays of a file may be in single precision",
        "_support/states.py",
        "value.dtype != np.dtype(dtype)",
        "value.dtype.kind != np.dtype(dtype).kind",
        STATES,
    ),
    Fault(
        "a strict bound lets the bound itself in",
        "_support/checks.py",
        " or (strict and number == low)",
        "",
        ARRAYS,
    ),
    Fault(
        "a space that was set while a log is opened is read in halves",
        "_support/sqlite.py",
        '        connection.execute("BEGIN")\n',
        "        pass\n",
        CRAFTED,
    ),
    Fault(
        "bytes of a damaged file in an error of SQLite come through",
        "_support/sqlite.py",
        "    except UnicodeDecodeError as error:",
        "    except ZeroDivisionError as error:",
        CRAFTED,
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
        ("_support/test_files.py",),
    ),
    Fault(
        "a file is not on the disk before it is renamed",
        "_support/replacing.py",
        "os.fsync(file.fileno())",
        "pass",
        SAVING,
    ),
    Fault(
        "a saved file loses its permissions",
        "_support/replacing.py",
        "os.chmod(temporary, stat.S_IMODE(old.st_mode))",
        "pass",
        SAVING,
    ),
    Fault("what killed writers left stays", "_support/replacing.py", "    _sweep(folder, own)\n", "", REPLACING),
    Fault("a failed save leaves its temporary file", "_support/replacing.py", "os.unlink(temporary)", "pass", SAVING),
    Fault(
        "the caller's threads are not given back",
        "_support/threads.py",
        "            torch.set_num_threads(self._n)",
        "            pass",
        ("posterior/test_linalg.py",),
    ),
    Fault(
        "a kernel may return too many columns",
        "_support/foreign_kernels.py",
        "if K.shape != shape:",
        "if K.shape[0] != shape[0]:",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "a function of numpy gets tensors",
        "_support/foreign_functions.py",
        "    return _as_array\n",
        "    return _detached\n",
        ("_support/test_foreign_functions.py",),
    ),
    Fault(
        "a kernel's own diagonal is not tried before the kernel is differentiated",
        "_support/foreign_kernels.py",
        "            self._own_diag(A)\n",
        "            pass\n",
        ("_support/test_foreign_kernels.py",),
    ),
    Fault(
        "a GPyTorch kernel is fitted in the user's hands",
        "_support/foreign_kernels.py",
        "_Dense(copy.deepcopy(kernel))",
        "_Dense(kernel)",
        ("kernels/test_kernels.py",),
    ),
)

KERNELS = (
    Fault(
        "a spherical kernel's lengthscales are fitted up the wrong slope",
        "kernels/spherical.py",
        "by_lengthscale = 4.0 * a1 * (apart -",
        "by_lengthscale = 4.0 * a1 * (apart +",
        ("kernels/test_structured.py",),
    ),
    Fault(
        "Matern-5/2 has another polynomial where gradients are wanted",
        "kernels/ard.py",
        "1.0 + a + a * a / 3.0 if",
        "1.0 + a + a * a / 2.0 if",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "Matern-5/2 has another polynomial without gradients",
        "kernels/ard.py",
        "value=1.0 / 3.0",
        "value=1.0 / 2.0",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "a category costs the less, the shorter its lengthscale",
        "kernels/ard.py",
        "torch.exp(-torch.exp(-log_h))",
        "torch.exp(-torch.exp(log_h))",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "Hamming lengthscales and outputscale change places",
        "kernels/ard.py",
        "log_hamming=theta[k : k + c], log_outputscale=theta[k + c])",
        "log_hamming=theta[k + 1 : k + c + 1], log_outputscale=theta[k])",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "the prior of lengthscales is wider",
        "kernels/ard.py",
        "self.prior_loc, math.sqrt(3.0), 0.5",
        "self.prior_loc, 3.0, 0.5",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "the lengthscale's density is taken for that of its logarithm",
        "kernels/ard.py",
        "+ 0.5 * math.log(max(n, 1)) - 3.0,",
        "+ 0.5 * math.log(max(n, 1)),",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "the diagonal of a kernel matrix is what rounding makes of it",
        "kernels/base.py",
        "return torch.diagonal_scatter(K, d, dim1=-2, dim2=-1)",
        "return K",
        ("kernels/test_kernels.py",),
    ),
    Fault(
        "a fixed kernel forgets its rotation",
        "kernels/fixed.py",
        "rotated = X2 @ R if len(R) else X2",
        "rotated = X2",
        ("posterior/test_loops.py",),
    ),
    Fault(
        "the slope of a sum over columns has the wrong sign",
        "kernels/_loops.py",
        "-a[j] / 3.0 * _total(terms, m)",
        "a[j] / 3.0 * _total(terms, m)",
        ("kernels/test_structured.py",),
    ),
    Fault(
        "slopes by rotated points are not rotated back",
        "kernels/structured.py",
        "lambda M: pullback(M) @ self.R.T",
        "lambda M: pullback(M) @ self.R",
        ("kernels/test_structured.py",),
    ),
    Fault(
        "negative prior variances pass",
        "kernels/base.py",
        " & (d >= 0)).all()",
        ").all()",
        ("kernels/test_kernels.py",),
    ),
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
        "max(context.t, 1) ** 2",
        "max(context.t, 1)",
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
        "math.sqrt(min(1.0 + context.batch_leverage, self.leverage_budget))",
        "math.sqrt(1.0 + context.batch_leverage)",
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
