// SPDX-License-Identifier: BSL-1.0
// The recorded cases with complex operands: each operator either refuses them, or stands in a list that was read by a
// human, gives for numbers without imaginary parts what it gives for real ones, and has derivatives that fit together.
#include "check.hpp"

#include <varve/by_name/all.hpp>
#include <varve/fft.hpp>

#include <algorithm>
#include <complex>
#include <filesystem>
#include <map>
#include <set>
#include <varve_test.hpp>

using namespace opinfo;
namespace vv = varve;
using C = std::complex<double>;

namespace {
/// Complex numbers with these real parts; the imaginary ones are small, or 0.
tensor with_imaginary(tensor const& x, double size) {
  tensor im = tensor::empty(x.sizes(), x.dtype());
  for (index_t k = 0; k < x.numel(); ++k) set(im, k, size * (0.3 + 0.17 * static_cast<double>(k % 7)));
  tensor re = tensor::empty(x.sizes(), x.dtype());
  for (index_t k = 0; k < x.numel(); ++k) set(re, k, element(x, k));
  return vv::complex(re, im);
}
bool has_kernels(tensor const& t) { return t.dtype() == dtype::float32 || t.dtype() == dtype::float64; }
/// Makes floating operands complex, all or one of them; false where there are none.
bool make_complex(recorded& c, double size, std::size_t only = ~std::size_t{0}) {
  bool any = false;
  std::size_t place = 0;
  for_tensors(c, [&](tensor& t) {
    bool const mine = place++ == only || only == ~std::size_t{0};
    if (mine && has_kernels(t)) t = with_imaginary(t, size), any = true;
  });
  return any;
}
template <class F>
void for_each_case(F const& f) {
  std::vector<std::filesystem::path> files;
  for (auto const& e : std::filesystem::directory_iterator(VARVE_TEST_DIR "/opinfo/data"))
    if (e.path().extension() == ".txt") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 80);
  for (auto const& file : files)
    for (auto const& c : read(file.string(), file.stem().string()))
      if (c.expressible && !c.refused) f(c);
}
std::vector<double> parts(tensor const& t) {
  return elements(vv::is_complex(t.dtype()) ? vv::view_as_real(vv::contiguous(t)) : t);
}
} // namespace

TEST_CASE("complex: what is taken of the recorded cases", "[.complexlist]") {
  std::map<std::string, int> accepted;
  std::map<std::string, std::string> odd;
  for_each_case([&](recorded const& of) {
    recorded c = of;
    if (!make_complex(c, 1)) return;
    try {
      (void)called(c);
      ++accepted[c.file];
    } catch (vv::error const& e) {
      if (std::string(e.what()).find("complex") == std::string::npos) odd[c.file] = e.what();
    }
  });
  for (auto const& [n, k] : accepted) std::printf("%s(%d) ", n.c_str(), k);
  std::printf("\n--- odd\n");
  for (auto const& [n, w] : odd) std::printf("%s: %s\n", n.c_str(), w.c_str());
}

namespace {
/// Operators that take complex numbers: those that only move elements or ask for equality, and those that compute.
std::set<std::string> const moving{"__getitem__",
                                   "_chunk_cat",
                                   "_unsafe_masked_index",
                                   "alias_copy",
                                   "as_strided",
                                   "as_strided.partial_views",
                                   "as_strided_copy",
                                   "as_strided_scatter",
                                   "atleast_1d",
                                   "atleast_2d",
                                   "atleast_3d",
                                   "broadcast_tensors",
                                   "cartesian_prod",
                                   "cat",
                                   "chunk",
                                   "clone",
                                   "column_stack",
                                   "combinations",
                                   "constant_pad_nd",
                                   "contiguous",
                                   "diag",
                                   "diag_embed",
                                   "diagflat",
                                   "diagonal",
                                   "diagonal_copy",
                                   "dsplit",
                                   "dstack",
                                   "eq",
                                   "equal",
                                   "expand",
                                   "expand_as",
                                   "expand_copy",
                                   "fft.fftshift",
                                   "fft.ifftshift",
                                   "fill",
                                   "flatten",
                                   "flip",
                                   "fliplr",
                                   "flipud",
                                   "full_like",
                                   "hsplit",
                                   "hstack",
                                   "index_fill",
                                   "index_put",
                                   "index_select",
                                   "isreal",
                                   "linalg.diagonal",
                                   "lu_unpack",
                                   "masked_fill",
                                   "masked_select",
                                   "meshgrid.list_of_tensors",
                                   "meshgrid.variadic_tensors",
                                   "movedim",
                                   "narrow",
                                   "ne",
                                   "new_full",
                                   "new_ones",
                                   "new_zeros",
                                   "nn.functional.pixel_shuffle",
                                   "nn.functional.pixel_unshuffle",
                                   "ones_like",
                                   "permute",
                                   "permute_copy",
                                   "ravel",
                                   "repeat",
                                   "repeat_interleave",
                                   "reshape",
                                   "reshape_as",
                                   "resolve_conj",
                                   "resolve_neg",
                                   "roll",
                                   "rot90",
                                   "scatter",
                                   "select_scatter",
                                   "slice",
                                   "split",
                                   "split.list_args",
                                   "split_with_sizes",
                                   "split_with_sizes_copy",
                                   "squeeze",
                                   "squeeze.multiple",
                                   "squeeze_copy",
                                   "stack",
                                   "t",
                                   "t_copy",
                                   "take",
                                   "take_along_dim",
                                   "tensor_split",
                                   "transpose",
                                   "transpose_copy",
                                   "tril",
                                   "triu",
                                   "unbind",
                                   "unfold",
                                   "unfold_copy",
                                   "unique_consecutive",
                                   "unsafe_chunk",
                                   "unsqueeze",
                                   "unsqueeze_copy",
                                   "view",
                                   "view_as",
                                   "view_copy",
                                   "vstack",
                                   "zero_",
                                   "zeros_like"};
std::set<std::string> const computing{"H",
                                      "__radd__",
                                      "__rdiv__",
                                      "__rmatmul__",
                                      "__rmul__",
                                      "__rpow__",
                                      "_unsafe_masked_index_put_accumulate",
                                      "acos",
                                      "acosh",
                                      "add",
                                      "addbmm",
                                      "addcmul",
                                      "addmm",
                                      "addmm.decomposed",
                                      "addmv",
                                      "addr",
                                      "allclose",
                                      "baddbmm",
                                      "cos",
                                      "cosh",
                                      "diff",
                                      "einsum",
                                      "exp",
                                      "exp2",
                                      "fft.hfftn",
                                      "fft.irfft",
                                      "fft.irfft2",
                                      "fft.irfftn",
                                      "inner",
                                      "isclose",
                                      "linalg.matrix_norm",
                                      "log",
                                      "log10",
                                      "log2",
                                      "mH",
                                      "masked.prod",
                                      "matmul",
                                      "mean",
                                      "mm",
                                      "mul",
                                      "mv",
                                      "nn.functional.adaptive_avg_pool2d",
                                      "nn.functional.adaptive_avg_pool3d",
                                      "nn.functional.avg_pool2d",
                                      "nn.functional.avg_pool3d",
                                      "outer",
                                      "pow",
                                      "prod",
                                      "real",
                                      "reciprocal",
                                      "rsqrt",
                                      "scatter_add",
                                      "sigmoid",
                                      "square",
                                      "sub",
                                      "sum",
                                      "sum_to_size",
                                      "tensordot",
                                      "trace",
                                      "true_divide",
                                      "vdot"};
/// Names that take some of the calls of the test below.
std::set<std::string> const by_name{"H",
                                    "T",
                                    "__add__",
                                    "__div__",
                                    "__getitem__",
                                    "__matmul__",
                                    "__mul__",
                                    "__pow__",
                                    "__radd__",
                                    "__rdiv__",
                                    "__rmatmul__",
                                    "__rmul__",
                                    "__rpow__",
                                    "__rsub__",
                                    "__rtruediv__",
                                    "__sub__",
                                    "__truediv__",
                                    "abs",
                                    "abs_",
                                    "absolute",
                                    "absolute_",
                                    "acos",
                                    "acos_",
                                    "acosh",
                                    "acosh_",
                                    "adaptive_avg_pool1d",
                                    "adaptive_avg_pool2d",
                                    "adaptive_avg_pool3d",
                                    "add",
                                    "add_",
                                    "addcmul",
                                    "addcmul_",
                                    "addmm",
                                    "addmm_",
                                    "addr",
                                    "adjoint",
                                    "alias_copy",
                                    "allclose",
                                    "angle",
                                    "arccos",
                                    "arccos_",
                                    "arccosh",
                                    "arccosh_",
                                    "arcsin",
                                    "arcsin_",
                                    "arcsinh",
                                    "arcsinh_",
                                    "arctan",
                                    "arctan_",
                                    "arctanh",
                                    "arctanh_",
                                    "asin",
                                    "asin_",
                                    "asinh",
                                    "asinh_",
                                    "atan",
                                    "atan_",
                                    "atanh",
                                    "atanh_",
                                    "atleast_1d",
                                    "atleast_2d",
                                    "atleast_3d",
                                    "avg_pool1d",
                                    "avg_pool2d",
                                    "avg_pool3d",
                                    "bfloat16",
                                    "block_diag",
                                    "bool",
                                    "broadcast_tensors",
                                    "byte",
                                    "cartesian_prod",
                                    "cat",
                                    "char",
                                    "chunk",
                                    "clone",
                                    "column_stack",
                                    "combinations",
                                    "concat",
                                    "concatenate",
                                    "conj",
                                    "conj_",
                                    "conj_physical",
                                    "conj_physical_",
                                    "contiguous",
                                    "copy_",
                                    "cos",
                                    "cos_",
                                    "cosh",
                                    "cosh_",
                                    "detach",
                                    "diag",
                                    "diag_embed",
                                    "diagflat",
                                    "diagonal",
                                    "diagonal_copy",
                                    "diff",
                                    "div",
                                    "div_",
                                    "divide",
                                    "divide_",
                                    "dot",
                                    "double",
                                    "dsplit",
                                    "dstack",
                                    "eq",
                                    "eq_",
                                    "equal",
                                    "exp",
                                    "exp2",
                                    "exp2_",
                                    "exp_",
                                    "expand_as",
                                    "expm1",
                                    "expm1_",
                                    "fft.fft",
                                    "fft.fft2",
                                    "fft.fftn",
                                    "fft.fftshift",
                                    "fft.hfft",
                                    "fft.hfft2",
                                    "fft.hfftn",
                                    "fft.ifft",
                                    "fft.ifft2",
                                    "fft.ifftn",
                                    "fft.ifftshift",
                                    "fft.irfft",
                                    "fft.irfft2",
                                    "fft.irfftn",
                                    "fft_fft",
                                    "fft_fft2",
                                    "fft_fftn",
                                    "fft_fftshift",
                                    "fft_hfft",
                                    "fft_hfft2",
                                    "fft_hfftn",
                                    "fft_ifft",
                                    "fft_ifft2",
                                    "fft_ifftn",
                                    "fft_ifftshift",
                                    "fft_irfft",
                                    "fft_irfft2",
                                    "fft_irfftn",
                                    "fill",
                                    "fill_",
                                    "flatten",
                                    "flip",
                                    "fliplr",
                                    "flipud",
                                    "float",
                                    "full_like",
                                    "ger",
                                    "half",
                                    "hsplit",
                                    "hstack",
                                    "imag",
                                    "inner",
                                    "int",
                                    "is_complex",
                                    "isclose",
                                    "isreal",
                                    "linalg.diagonal",
                                    "linalg.matmul",
                                    "linalg.matrix_norm",
                                    "linalg.multi_dot",
                                    "linalg.norm",
                                    "linalg_diagonal",
                                    "linalg_matmul",
                                    "linalg_matrix_norm",
                                    "linalg_multi_dot",
                                    "linalg_norm",
                                    "log",
                                    "log10",
                                    "log10_",
                                    "log1p",
                                    "log1p_",
                                    "log2",
                                    "log2_",
                                    "log_",
                                    "long",
                                    "mH",
                                    "mT",
                                    "masked.mean",
                                    "masked.prod",
                                    "masked.sum",
                                    "matmul",
                                    "mean",
                                    "meshgrid",
                                    "mm",
                                    "mul",
                                    "mul_",
                                    "multiply",
                                    "multiply_",
                                    "ne",
                                    "ne_",
                                    "neg",
                                    "neg_",
                                    "negative",
                                    "negative_",
                                    "new_ones",
                                    "new_zeros",
                                    "nn.functional.adaptive_avg_pool1d",
                                    "nn.functional.adaptive_avg_pool2d",
                                    "nn.functional.adaptive_avg_pool3d",
                                    "nn.functional.avg_pool1d",
                                    "nn.functional.avg_pool2d",
                                    "nn.functional.avg_pool3d",
                                    "nn.functional.pixel_shuffle",
                                    "nn.functional.pixel_unshuffle",
                                    "nn.functional.sigmoid",
                                    "nn.functional.sigmoid_",
                                    "nn.functional.tanh",
                                    "nn.functional.tanh_",
                                    "not_equal",
                                    "not_equal_",
                                    "ones_like",
                                    "outer",
                                    "permute",
                                    "permute_copy",
                                    "pixel_shuffle",
                                    "pixel_unshuffle",
                                    "pow",
                                    "pow_",
                                    "prod",
                                    "ravel",
                                    "real",
                                    "reciprocal",
                                    "reciprocal_",
                                    "repeat",
                                    "repeat_interleave",
                                    "reshape_as",
                                    "resolve_conj",
                                    "resolve_neg",
                                    "roll",
                                    "rot90",
                                    "row_stack",
                                    "rsqrt",
                                    "rsqrt_",
                                    "rsub",
                                    "set_",
                                    "sgn",
                                    "sgn_",
                                    "short",
                                    "sigmoid",
                                    "sigmoid_",
                                    "sin",
                                    "sin_",
                                    "sinh",
                                    "sinh_",
                                    "slice",
                                    "special.exp2",
                                    "special.exp2_",
                                    "special.expit",
                                    "special.expit_",
                                    "special.expm1",
                                    "special.expm1_",
                                    "special.log1p",
                                    "special.log1p_",
                                    "special_exp2",
                                    "special_exp2_",
                                    "special_expit",
                                    "special_expit_",
                                    "special_expm1",
                                    "special_expm1_",
                                    "special_log1p",
                                    "special_log1p_",
                                    "split",
                                    "sqrt",
                                    "sqrt_",
                                    "square",
                                    "square_",
                                    "squeeze",
                                    "squeeze_copy",
                                    "stack",
                                    "sub",
                                    "sub_",
                                    "subtract",
                                    "subtract_",
                                    "sum",
                                    "sum_to_size",
                                    "t",
                                    "t_copy",
                                    "tan",
                                    "tan_",
                                    "tanh",
                                    "tanh_",
                                    "tensor_split",
                                    "tensordot",
                                    "tile",
                                    "to",
                                    "trace",
                                    "tril",
                                    "tril_",
                                    "triu",
                                    "triu_",
                                    "true_divide",
                                    "true_divide_",
                                    "type_as",
                                    "unbind",
                                    "unique_consecutive",
                                    "unsafe_chunk",
                                    "unsafe_split",
                                    "unsqueeze",
                                    "unsqueeze_copy",
                                    "vdot",
                                    "view_as",
                                    "view_as_real",
                                    "vsplit",
                                    "vstack",
                                    "zero_",
                                    "zeros_like"};
tensor with_zero(tensor const& t) {
  return vv::is_complex(t.dtype()) ? t : vv::complex(vv::to(t, dtype::float64), vv::zeros(t.sizes(), dtype::float64));
}
/// A conversion to real numbers, whatever they are then used for, is asked for.
bool converts(recorded const& c) {
  auto const is_dtype = [](argument const& a) { return a.is<dtype>(); };
  for (char const* op : {"bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"})
    if (c.op == op) return true;
  return std::any_of(c.arguments.begin(), c.arguments.end(), is_dtype) ||
         std::any_of(c.named.begin(), c.named.end(), [&](auto const& n) { return is_dtype(n.value); });
}
bool refused(std::string const& what) { return what.find("complex") != std::string::npos; }
/// Is one operand of a case, made complex, taken in silence?
template <class F>
void for_each_complex_case(F const& f) {
  for_each_case([&](recorded const& of) {
    if (converts(of)) return;
    recorded all = of;
    std::size_t n = 0;
    for_tensors(all, [&](tensor&) { ++n; });
    for (std::size_t only = 0; only < n + 1; ++only) {
      if (only == 1 && n == 1) return;
      recorded c = of;
      if (make_complex(c, 1, only == n ? ~std::size_t{0} : only)) f(c, of);
    }
  });
}
} // namespace

TEST_CASE("complex: recorded cases are refused, or of operators that take complex numbers", "[opinfo][complex]") {
  std::map<std::string, std::string> wrong;
  std::set<std::string> seen;
  int refusals = 0;
  for_each_complex_case([&](recorded const& c, recorded const& of) {
    bool const known = moving.count(c.file) || computing.count(c.file);
    try {
      (void)called(c);
      seen.insert(c.file);
      if (!known) wrong[c.file + " " + std::to_string(c.number)] = "taken";
    } catch (vv::error const& e) {
      ++refusals;
      if (refused(e.what())) return;
      if (c.file == "nn.functional.embedding_bag") return; // takes what is not floating for the index
      try {
        (void)called(of); // an error of its own, of other dtypes beside each other for instance
        if (std::string(e.what()).find("dtype") == std::string::npos)
          wrong[c.file + " " + std::to_string(c.number)] = e.what();
      } catch (vv::error const&) {}
    }
    if (!vv::this_thread_state.quiet()) wrong[c.file] = "something is left on the stack";
  });
  for (auto const& list : {moving, computing})
    for (std::string const& name : list)
      if (!seen.count(name)) wrong[name] = "never taken";
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(refusals > 1000);
}
TEST_CASE("complex: without imaginary parts recorded cases give what real numbers give", "[opinfo][complex]") {
  std::map<std::string, std::string> wrong;
  int count = 0;
  for_each_case([&](recorded const& of) {
    if (converts(of) || (!moving.count(of.file) && !computing.count(of.file))) return;
    recorded c = of;
    if (!make_complex(c, 0)) return;
    std::vector<argument> y;
    try {
      y = called(c);
    } catch (vv::error const& e) {
      if (!refused(e.what())) wrong[c.file + " " + std::to_string(c.number)] = e.what();
      return;
    }
    auto const right = flat(of.outputs);
    double const tolerance = tolerance_of(of) * 10;
    for (std::size_t k = 0; k < right.size() && k < y.size(); ++k) {
      if (!right[k].is<tensor>()) continue;
      tensor const mine = y[k].as<tensor>(), theirs = right[k].as<tensor>();
      tensor const re = vv::is_complex(mine) ? vv::real(mine) : mine;
      if (!(re.sizes() == theirs.sizes())) wrong[c.file + " " + std::to_string(c.number)] = "another shape";
      else if (vv::is_floating(theirs.dtype()) && re.dtype() != theirs.dtype()) wrong[c.file] = "another dtype";
      else
        for (index_t i = 0; i < re.numel(); ++i) {
          double const b = element(theirs, i);
          if (std::isnan(b) || std::isinf(b)) continue; // there complex functions have a value
          double const im = vv::is_complex(mine) ? element(vv::imag(mine), i) : 0;
          if (!close(element(re, i), b, tolerance) || std::abs(im) > tolerance * (1 + std::abs(b)))
            wrong[c.file + " " + std::to_string(c.number)] =
                std::to_string(element(re, i)) + "+" + std::to_string(im) + "j instead of " + std::to_string(b);
        }
      ++count;
    }
  });
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(count > 500);
}

TEST_CASE("complex: one complex operand beside real ones is what it is beside such without imaginary parts",
          "[opinfo][complex]") {
  std::map<std::string, std::string> wrong;
  int count = 0;
  for_each_complex_case([&](recorded const& c, recorded const&) {
    std::size_t n = 0;
    recorded all = c;
    for_tensors(all, [&](tensor& t) { ++n, t = has_kernels(t) ? with_imaginary(t, 0) : t; });
    if (n < 2) return;
    std::vector<argument> y, right;
    try {
      y = called(c), right = called(all);
    } catch (vv::error const&) { return; }
    ++count;
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (!y[k].is<tensor>()) continue;
      tensor const a = y[k].as<tensor>(), b = right[k].as<tensor>();
      auto const whole = [](tensor const& t) { return vv::has_derivatives(t.dtype()) ? with_zero(t) : t; };
      auto const p = parts(whole(a)), q = parts(whole(b));
      bool same = p.size() == q.size();
      for (std::size_t i = 0; same && i < p.size(); ++i) same = close(p[i], q[i], 1e-5);
      if (!same) wrong[c.file + " " + std::to_string(c.number)] = "another value";
    }
  });
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(count > 50);
}
TEST_CASE("complex: by name, every function of one to three numbers refuses or is known", "[opinfo][complex]") {
  C const some[] = {{0.5, 1}, {2, -0.25}, {-1, 0.5}, {0.25, 2}};
  std::set<std::string> taken;
  std::vector<tensor> const shapes{tensor::from_data(some, {2, 2}), tensor::from_data(some, {4}),
                                   tensor::from_data(some, {1, 1, 2, 2})};
  std::size_t names = 0;
  for (std::string const& name : vv::ops::names()) {
    ++names;
    for (tensor const& z : shapes)
      for (auto const& x : std::vector<std::vector<argument>>{
               {z}, {z, z}, {z, z, z}, {z, 0}, {z, 1}, {z, 0.5}, {argument::list{z, z}}, {z, argument::list{0}}}) {
        std::vector<argument> in = x;
        for (argument& a : in)
          if (a.is<tensor>()) a = vv::clone(a.as<tensor>());
        try {
          (void)vv::ops::call(name, std::span<argument const>(in), {});
          taken.insert(name);
        } catch (vv::error const&) {}
        if (!vv::this_thread_state.quiet()) FAIL(name << " left something on the stack");
      }
  }
  std::string unknown;
  for (std::string const& name : taken)
    if (!by_name.count(name)) unknown += "\"" + name + "\", ";
  CHECK(unknown == "");
  CHECK(names > 700);
}

namespace {
/// The inner product of the real numbers that complex ones consist of.
double product_of_parts(values const& a, values const& b) {
  double s = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    auto const x = parts(a[k]), y = parts(b[k]);
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) s += x[i] * y[i];
  }
  return s;
}
tensor drawn(tensor const& like, numbers& draw) {
  dtype const part = vv::part_type(like.dtype());
  tensor const re = uniform(like.sizes(), draw, -1, 1, part);
  return vv::is_complex(like.dtype()) ? vv::complex(re, uniform(like.sizes(), draw, -1, 1, part)) : re;
}
values drawn(values const& like, numbers& draw) {
  values r;
  for (tensor const& t : like) r.push_back(drawn(t, draw));
  return r;
}
std::vector<std::size_t> places_with_derivatives(recorded c) {
  std::vector<std::size_t> r;
  std::size_t k = 0;
  for_tensors(c, [&](tensor& t) {
    if (vv::has_derivatives(t.dtype())) r.push_back(k);
    ++k;
  });
  return r;
}
/// All results of a case that have derivatives, as a function of tensors.
struct of_all {
  recorded const& c;
  std::vector<std::size_t> const& inputs;
  values operator()(values const& v) const {
    recorded with = c;
    std::size_t k = 0, place = 0;
    for_tensors(with, [&](tensor& t) {
      if (k < inputs.size() && inputs[k] == place++) t = v[k++];
    });
    values r;
    for (argument const& a : called(with))
      if (a.is<tensor>() && vv::has_derivatives(a.as<tensor>().dtype())) r.push_back(a.as<tensor>());
    return r;
  }
};
values moved(values const& x, double h, values const& d) {
  values r;
  for (std::size_t k = 0; k < x.size(); ++k) r.push_back(vv::add(x[k], vv::mul(d[k], h)));
  return r;
}
std::string wrong_laws(recorded const& c, numbers& draw) {
  auto const inputs = places_with_derivatives(c);
  of_all const f{c, inputs};
  values const x = tensors_at(c, inputs);
  values const y = f(x);
  if (y.empty()) return "";
  values const d = drawn(x, draw), g = drawn(y, draw);
  values const dy = vv::jvp(f, std::tuple(x), std::tuple(d)).second;
  values const gx = std::get<0>(vv::vjp(f, x).second(g));
  for (std::size_t k = 0; k < x.size(); ++k)
    if (gx[k].dtype() != x[k].dtype() || !(gx[k].sizes() == x[k].sizes()))
      return "a gradient of another dtype or shape";
  for (std::size_t k = 0; k < y.size(); ++k)
    if (dy[k].dtype() != y[k].dtype() || !(dy[k].sizes() == y[k].sizes())) return "a tangent of another dtype or shape";
  double const a = product_of_parts(g, dy), b = product_of_parts(gx, d);
  if (!close(a, b, 1e-7)) return "vjp is not the transpose of jvp: " + std::to_string(a) + ", " + std::to_string(b);
  double const h = 1e-6;
  values const up = f(moved(x, h, d)), down = f(moved(x, -h, d));
  for (std::size_t k = 0; k < y.size(); ++k) {
    auto const u = parts(up[k]), v = parts(down[k]), t = parts(dy[k]);
    for (std::size_t i = 0; i < u.size(); ++i)
      if (std::isfinite(u[i]) && !close((u[i] - v[i]) / (2 * h), t[i], 2e-4))
        return "tangent " + std::to_string(t[i]) + ", difference " + std::to_string((u[i] - v[i]) / (2 * h));
  }
  // lanes
  values const other = moved(x, 0.25, d);
  values wide;
  for (std::size_t k = 0; k < x.size(); ++k) wide.push_back(vv::stack(values{x[k], other[k]}, 0));
  values const lanes = vv::vmap(f)(wide), second = f(other);
  for (std::size_t k = 0; k < y.size(); ++k)
    for (int l = 0; l < 2; ++l) {
      auto const p = parts(vv::select(lanes[k], 0, l)), q = parts(l ? second[k] : y[k]);
      for (std::size_t i = 0; i < p.size(); ++i)
        if (!close(p[i], q[i], 1e-10)) return "lane " + std::to_string(l);
    }
  return "";
}
} // namespace

TEST_CASE("complex: derivatives of recorded cases fit together, in lanes too", "[opinfo][complex]") {
  std::map<std::string, std::string> wrong;
  numbers draw(5);
  int count = 0;
  for_each_complex_case([&](recorded const& c, recorded const& of) {
    if (of.vjp.inputs.empty() || (!moving.count(of.file) && !computing.count(of.file))) return;
    bool single = false;
    std::size_t elements_of = 0;
    recorded look = of;
    for_tensors(look, [&](tensor& t) {
      single = single || t.dtype() == dtype::float32, elements_of += static_cast<std::size_t>(t.numel());
    });
    if (single || elements_of > 400) return;
    std::string const name = c.file + " " + std::to_string(c.number);
    try {
      std::string const w = wrong_laws(c, draw);
      if (!w.empty()) wrong[name] = w;
      ++count;
    } catch (vv::error const& e) {
      if (!refused(e.what()) && std::string(e.what()).find("dtype") == std::string::npos) wrong[name] = e.what();
    }
  });
  for (auto const& [name, what] : wrong) UNSCOPED_INFO(name << ": " << what);
  CHECK(wrong.size() == 0);
  CHECK(count > 300);
}
