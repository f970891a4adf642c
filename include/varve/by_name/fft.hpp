// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/by_name/call.hpp>

namespace varve::by_name {
/// Returns the call rows of complex tensors and Fourier transforms.
std::span<call_row const> fourier_transforms();
} // namespace varve::by_name

#if VARVE_DEFINES
#include <varve/fft/functions.hpp>

namespace varve::by_name {
VARVE_FIRST inline call_family const fourier_family{&fourier_transforms};

using norm_name = std::optional<std::string>;
inline std::string_view norm_of_transform(norm_name const& n) { return n ? std::string_view(*n) : "backward"; }
using transform_of_one = tensor (*)(tensor const&, std::optional<extent>, extent, std::string_view);
using transform_of_two = tensor (*)(tensor const&, std::optional<dims> const&, dims const&, std::string_view);
using transform_of_many = tensor (*)(tensor const&, std::optional<dims> const&, std::optional<dims> const&,
                                     std::string_view);
template <transform_of_one F>
tensor transformed(tensor const& x, std::optional<extent> n, index_t axis, norm_name norm) {
  return F(x, n, axis, norm_of_transform(norm));
}
template <transform_of_two F>
tensor transformed_twice(tensor const& x, std::optional<dims> s, dims axes, norm_name norm) {
  return F(x, s, axes, norm_of_transform(norm));
}
template <transform_of_many F>
tensor transformed_often(tensor const& x, std::optional<dims> s, std::optional<dims> axes, norm_name norm) {
  return F(x, s, axes, norm_of_transform(norm));
}

VARVE_LIBRARY std::span<call_row const> fourier_transforms() {
  using enum call_forms;
  static call_row const rows[] = {
      {"complex(Tensor real, Tensor imag) -> Tensor",
       +[](tensor const& re, tensor const& im) -> tensor { return complex(re, im); }, out_of_its_dtype},
      {"polar(Tensor abs, Tensor angle) -> Tensor",
       +[](tensor const& r, tensor const& a) -> tensor { return polar(r, a); }, out_of_its_dtype},
      {"real(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return real(x); }},
      {"imag(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return imag(x); }},
      {"view_as_real(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return view_as_real(x); }},
      {"view_as_complex(Tensor(a) self) -> Tensor(a)", +[](tensor const& x) -> tensor { return view_as_complex(x); }},
      {"conj_physical(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return conj(x); }, both, "conj"},
      {"H(Tensor(a) self) -> Tensor(a)",
       +[](tensor const& x) -> tensor {
         if (x.dim() != 0 && x.dim() != 2) refuse::argument_is_invalid("H", "a matrix is expected");
         return x.dim() ? adjoint(x) : conj(x);
       }},
      {"mH(Tensor(a) self) -> Tensor(a)",
       +[](tensor const& x) -> tensor {
         if (x.dim() == 1) refuse::argument_is_invalid("mH", "matrices are expected, not vectors");
         return x.dim() ? adjoint(x) : conj(x);
       },
       "adjoint"},
      {"vdot(Tensor self, Tensor other) -> Tensor",
       +[](tensor const& a, tensor const& b) -> tensor {
         if (a.dtype() != b.dtype()) refuse::dtypes_differ("vdot", name(a.dtype()), name(b.dtype()));
         return dot(conj(a), b);
       },
       out_of_its_dtype},
      {"is_complex(Tensor self) -> bool", +[](tensor const& x) -> bool { return is_complex(x); }},
      {"isreal(Tensor self) -> Tensor",
       +[](tensor const& x) -> tensor {
         return is_complex(x) ? tensor(eq(imag(x), 0)) : tensor(ones_like(to(x, dtype::bool_)));
       }},
      {"angle(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return angle(x); }, out},
      {"sgn(Tensor self) -> Tensor", +[](tensor const& x) -> tensor { return sgn(x); }, both},

      {"fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::fft<tensor>>, out,
       "fft.fft"},
      {"fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::ifft<tensor>>,
       out, "fft.ifft"},
      {"fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::rfft<tensor>>,
       out, "fft.rfft"},
      {"fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::irfft<tensor>>,
       out, "fft.irfft"},
      {"fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::hfft<tensor>>,
       out, "fft.hfft"},
      {"fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", transformed<fft::ihfft<tensor>>,
       out, "fft.ihfft"},
      {"fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::fft2<tensor>>, out, "fft.fft2"},
      {"fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::ifft2<tensor>>, out, "fft.ifft2"},
      {"fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::rfft2<tensor>>, out, "fft.rfft2"},
      {"fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::irfft2<tensor>>, out, "fft.irfft2"},
      {"fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::hfft2<tensor>>, out, "fft.hfft2"},
      {"fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
       transformed_twice<fft::ihfft2<tensor>>, out, "fft.ihfft2"},
      {"fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::fftn<tensor>>, out, "fft.fftn"},
      {"fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::ifftn<tensor>>, out, "fft.ifftn"},
      {"fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::rfftn<tensor>>, out, "fft.rfftn"},
      {"fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::irfftn<tensor>>, out, "fft.irfftn"},
      {"fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::hfftn<tensor>>, out, "fft.hfftn"},
      {"fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
       transformed_often<fft::ihfftn<tensor>>, out, "fft.ihfftn"},
      {"fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
       +[](tensor const& x, std::optional<dims> a) -> tensor { return fft::fftshift(x, a); }, "fft.fftshift"},
      {"fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
       +[](tensor const& x, std::optional<dims> a) -> tensor { return fft::ifftshift(x, a); }, "fft.ifftshift"},
      {"fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](index_t n, double d, std::optional<dtype> t) -> tensor {
         return fft::fftfreq(n, d, t.value_or(get_default_dtype()));
       },
       out, "fft.fftfreq"},
      {"fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       +[](index_t n, double d, std::optional<dtype> t) -> tensor {
         return fft::rfftfreq(n, d, t.value_or(get_default_dtype()));
       },
       out, "fft.rfftfreq"}};
  return rows;
}
} // namespace varve::by_name
#endif
