// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/array.hpp>
#include <varve/value/memory_view.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

/// A view of row-major memory with an element type and shape known at compile time. It brings run-time memory (a
/// `tensor`, a buffer, a span, an mdspan, a matrix of Eigen) into compile-time programs and owns nothing. Operators
/// read it as an `array`; fused functions read and write the memory itself. `tensor_ref(m)` deduces element type and
/// extents from an mdspan or a matrix; extents that are not known at compile time become `dyn`.
template <class T, index_t... D>
class tensor_ref {
public:
  using element = std::remove_const_t<T>;
  using array_type = array<element, D...>;

  /// Views memory of at least `numel` elements.
  constexpr explicit tensor_ref(T* data) : data_(data) {}
  /// Views anything with `data()` and `size()`. Throws `shape_error` if the size is not the number of elements.
  template <class R>
    requires(!viewable<R> &&
             requires(R& r) {
               { r.data() } -> std::convertible_to<T*>;
               r.size();
             })
  constexpr explicit tensor_ref(R& range) : data_(range.data()) {
    static_assert(!detail::has_strides<R>, "varve: tensor_ref: what has strides is not taken for row-major memory; "
                                           "pass its pointer, with sizes and strides where extents are dyn");
    if (static_cast<index_t>(range.size()) != array_type::count)
      refuse::shapes_do_not_match("tensor_ref", dims{static_cast<index_t>(range.size())}, ints<D...>::to_dims());
  }
  /// Views an mdspan, or a matrix or array of Eigen (`memory_view.hpp`). Its extents must equal those of this type;
  /// they are compared at compile time where known, otherwise here (`shape_error`). The elements must lie in row-major
  /// order (`value_error`; a matrix whose type is column-major does not compile). A vector may have any shape with as
  /// many elements.
  template <class M>
    requires viewable_as<M, T>
  constexpr explicit tensor_ref(M&& view) : data_(detail::row_major_data<D...>(view)) {}
  /// Views a tensor. Throws `dtype_error` or `shape_error` if its dtype or shape differs, and `value_error` if its
  /// elements do not lie in row-major order. The tensor must outlive the view.
  explicit tensor_ref(tensor const& t) : data_(t.data<element>()) {
    if (!(t.sizes() == ints<D...>::to_dims()))
      refuse::shapes_do_not_match("tensor_ref", t.sizes(), ints<D...>::to_dims());
    if (!t.is_contiguous())
      refuse::argument_is_invalid("tensor_ref", "the tensor is not contiguous; pass contiguous(t)");
  }

  constexpr T* data() const { return data_; }
  static constexpr index_t size() { return array_type::count; }
  constexpr T& operator[](index_t i) const { return data_[i]; }
  /// Returns a copy of the elements.
  constexpr array_type load() const {
    array_type r{};
    for (index_t k = 0; k < size(); ++k) r.data[k] = data_[k];
    return r;
  }

private:
  T* data_;
};

/// A view of memory with some extents known only at run time: `tensor_ref<float const, dyn, 3>`. Operators use it as a
/// `tensor` on that memory, without a copy. It keeps strides.
template <class T, index_t... D>
  requires((D == dyn) || ...)
class tensor_ref<T, D...> {
public:
  using element = std::remove_const_t<T>;
  using tensor_type = tensor;

  /// Views row-major memory of these sizes. Throws `shape_error` if they differ from the extents.
  tensor_ref(T* data, dims const& sizes) : tensor_ref(data, sizes, contiguous_strides(sizes)) {}
  tensor_ref(T* data, dims const& sizes, dims const& strides) : data_(data), sizes_(sizes), strides_(strides) {
    dims const extents{D...};
    bool fits = sizes.n == extents.n && strides.n == extents.n;
    for (int k = 0; fits && k < extents.n; ++k) fits = extents[k] == dyn ? sizes[k] >= 0 : extents[k] == sizes[k];
    if (!fits) refuse::shapes_do_not_match("tensor_ref", sizes, extents);
  }
  /// Views anything with `data()` and `size()` as a vector.
  template <class R>
    requires(sizeof...(D) == 1 && !viewable<R> &&
             requires(R& r) {
               { r.data() } -> std::convertible_to<T*>;
               r.size();
             })
  explicit tensor_ref(R& range) : tensor_ref(range.data(), dims{static_cast<index_t>(range.size())}) {
    static_assert(
        !detail::has_strides<R>,
        "varve: tensor_ref: what has strides is not taken for row-major memory; pass its pointer, sizes and strides");
  }
  /// Views an mdspan, or a matrix or array of Eigen, with any strides that are not negative (`value_error`). Matrices
  /// need two extents, vectors one or two. Other extents fail to compile where they are known, or throw `shape_error`.
  template <class M>
    requires viewable_as<M, T>
  explicit tensor_ref(M&& view) : tensor_ref(detail::strided_view<D...>(view)) {}
  /// Views a tensor with any strides. Throws `dtype_error` if its dtype differs. The tensor must outlive the view.
  explicit tensor_ref(tensor const& t) : tensor_ref(t.data<element>(), t.sizes(), t.strides()) {}

  T* data() const { return data_; }
  index_t size() const { return numel(sizes_); }
  dims const& sizes() const { return sizes_; }
  dims const& strides() const { return strides_; }
  /// Returns a tensor on the same memory.
  tensor view() const {
    return tensor::from_blob(const_cast<element*>(data_), sizes_, strides_, dtype_of_type<element>());
  }

private:
  template <class E>
  explicit tensor_ref(strided<E> const& s) : tensor_ref(s.data, s.sizes, s.strides) {}
  T* data_;
  dims sizes_, strides_;
};

namespace detail {
/// The number of elements according to the type of a range; `dyn` if the type does not fix it.
template <class R>
inline constexpr index_t extent_of_range = dyn;
template <class R>
  requires requires { typename std::array<char, std::tuple_size<R>::value>; }
inline constexpr index_t extent_of_range<R> = static_cast<index_t>(std::tuple_size<R>::value);
template <class R>
  requires requires { typename std::array<char, R::extent + 1>; }
inline constexpr index_t extent_of_range<R> = static_cast<index_t>(R::extent);
} // namespace detail
/// Deduces `tensor_ref(v)` for a vector, array or span. The extent is fixed if the type fixes it, otherwise `dyn`.
template <class R>
  requires(!viewable<R> &&
           requires(R& r) {
             *r.data();
             r.size();
           })
tensor_ref(R& range)
    -> tensor_ref<std::remove_pointer_t<decltype(range.data())>, detail::extent_of_range<std::remove_const_t<R>>>;
template <detail::view_of_rank<0> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>>;
template <detail::view_of_rank<1> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>>;
template <detail::view_of_rank<2> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>>;
template <detail::view_of_rank<3> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>,
                              detail::extent_of_view<M, 2>>;
template <detail::view_of_rank<4> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>,
                              detail::extent_of_view<M, 2>, detail::extent_of_view<M, 3>>;

template <class T, index_t... D>
  requires((D == dyn) || ...)
struct traits<tensor_ref<T, D...>> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor_ref<T, D...> const& x) { return x.sizes(); }
  static dims type(tensor_ref<T, D...> const&) {
    return dims{static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())};
  }
};
template <class T, index_t... D>
struct traits<tensor_ref<T, D...>> {
  using base = array<std::remove_const_t<T>, D...>;
  static constexpr int level = 0;
  static constexpr ints<D...> shape(tensor_ref<T, D...> const&) { return {}; }
  static constexpr auto type(tensor_ref<T, D...> const&) {
    return ints<static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())>{};
  }
};

/// Returns a pointer to the first element of the memory behind a view.
template <class T, index_t... D>
  requires((D != dyn) && ...)
constexpr T* data_of(tensor_ref<T, D...> const& x) {
  return x.data();
}

} // namespace varve
