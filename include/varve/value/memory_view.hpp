// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/strided.hpp>

/// @file
/// Views of memory that other libraries own. A view is recognized by its members, so no header of those libraries is
/// included, and any type with the same members works.
namespace varve {

/// An extent of a `tensor_ref` that is known only at run time.
inline constexpr index_t dyn = -1;

namespace detail {
/// The type that a pointer, or a reference to one, points to; void for all other types.
template <class P>
using pointee =
    std::conditional_t<std::is_pointer_v<std::remove_cvref_t<P>>, std::remove_pointer_t<std::remove_cvref_t<P>>, void>;
template <class M>
concept has_data_handle = requires(M& m) {
  requires !std::is_void_v<pointee<decltype(m.data_handle())>>;
  m.extents();
  m.extent(0);
  m.stride(0);
  typename std::integral_constant<int, static_cast<int>(M::rank())>;
};
template <class M>
concept gives_what_lies_there =
    requires(M& m) { requires std::is_same_v<typename M::reference, decltype(*m.data_handle())>; };
template <class M>
concept gives_computed_elements = requires { typename M::reference; } && !gives_what_lies_there<M>;
template <class M>
concept maps_by_strides = requires(M& m) { m.mapping().stride(0); };
template <class M>
concept maps_otherwise = (M::rank() > 0) && requires(M& m) { m.mapping(); } && !maps_by_strides<M>;
} // namespace detail

/// The members of an mdspan (`std::mdspan`, Kokkos's, a user's own): `data_handle()`, which returns a pointer;
/// `extents()`; `extent(r)` and `stride(r)`, in elements; a constant `rank()`. A `mapping()`, if any, must have
/// strides. A `reference`, if any, must refer to the element itself, not to something computed from it.
template <class M>
concept mdspan_like = detail::has_data_handle<M> && !detail::gives_computed_elements<M> && !detail::maps_otherwise<M>;

/// The members of a matrix, vector or array of Eigen that lies in memory: `Matrix`, `Array`, `Map`, `Ref`, `Block`s and
/// their transposes.
template <class M>
concept eigen_like = requires(M& m) {
  requires !std::is_void_v<detail::pointee<decltype(m.data())>>;
  m.rows();
  m.cols();
  m.innerStride();
  m.outerStride();
  typename std::bool_constant<static_cast<bool>(M::IsRowMajor)>;
  typename std::integral_constant<int, static_cast<int>(M::RowsAtCompileTime) + static_cast<int>(M::ColsAtCompileTime)>;
};

/// The members of a tensor of Eigen's unsupported module that lies in memory: `Tensor`, `TensorMap`.
template <class M>
concept eigen_tensor_like = requires(M& m) {
  requires !std::is_void_v<detail::pointee<decltype(m.data())>>;
  m.dimension(0);
  m.dimensions();
  typename std::integral_constant<int, static_cast<int>(M::NumIndices) + static_cast<int>(M::Layout)>;
};

/// A description of the memory behind a view of type `M`: `element`, `rank`, `extents(rank)` with `dyn` for extents
/// that are not known at compile time, and `of(m, rank)` with all values at run time. A matrix may also be viewed as a
/// vector and a vector as a matrix: see `can_be(rank)`. `owns` is true if `M` is the memory itself and not a view.
template <class M>
struct memory_view;

template <mdspan_like M>
struct memory_view<M> {
  using element = detail::pointee<decltype(std::declval<M&>().data_handle())>;
  static constexpr int rank = static_cast<int>(M::rank());
  static constexpr bool owns = false, column_major = false;
  static_assert(rank <= max_rank, "varve: tensor_ref: values have at most eight dimensions");

  static constexpr bool can_be(int r) { return r == rank; }
  static constexpr dims extents(int) {
    dims r;
    for (int k = 0; k < rank; ++k) r.push_back(static_extent(k));
    return r;
  }
  static constexpr strided<element> of(M& m, int) {
    strided<element> r{m.data_handle(), {}, {}};
    if constexpr (requires { m.is_strided(); })
      if (!m.is_strided())
        refuse::argument_is_invalid("tensor_ref", "the layout of the mdspan has no strides; copy it to one that has");
    if constexpr (rank > 0)
      for (int k = 0; k < rank; ++k) {
        r.sizes.push_back(static_cast<index_t>(m.extent(index(k))));
        r.strides.push_back(static_cast<index_t>(m.stride(index(k))));
      }
    return r;
  }

private:
  static constexpr std::size_t index(int k) { return static_cast<std::size_t>(k); }
  /// Converts the standard's value for "at run time", the largest `std::size_t`, to `dyn`.
  static constexpr index_t static_extent(int k) {
    if constexpr (requires { M::static_extent(0); }) return static_cast<index_t>(M::static_extent(index(k)));
    else if constexpr (requires { M::extents_type::static_extent(0); })
      return static_cast<index_t>(M::extents_type::static_extent(index(k)));
    else return dyn;
  }
};

template <eigen_like M>
struct memory_view<M> {
private:
  static constexpr index_t known(int n) { return n < 0 ? dyn : n; }

public:
  using element = detail::pointee<decltype(std::declval<M&>().data())>;
  static constexpr index_t rows = known(M::RowsAtCompileTime), cols = known(M::ColsAtCompileTime);
  static constexpr bool row_major = M::IsRowMajor;
  static constexpr int rank = rows == 1 || cols == 1 ? 1 : 2;
  static constexpr bool column_major = rank == 2 && !row_major;
  static constexpr bool owns = requires { requires std::is_same_v<typename M::PlainObject, std::remove_const_t<M>>; };

  static constexpr bool can_be(int r) { return r == 2 || (r == 1 && (rank == 1 || rows == dyn || cols == dyn)); }
  static constexpr dims extents(int r) {
    if (r == 2) return {rows, cols};
    return {rank == 1 ? rows == 1 ? cols : rows : dyn};
  }
  static constexpr strided<element> of(M& m, int r) {
    index_t const n[] = {static_cast<index_t>(m.rows()), static_cast<index_t>(m.cols())}, inner = m.innerStride(),
                  outer = m.outerStride(), step[] = {row_major ? outer : inner, row_major ? inner : outer};
    if (r == 2) return {m.data(), {n[0], n[1]}, {step[0], step[1]}};
    if (n[0] != 1 && n[1] != 1)
      refuse::shapes_do_not_match("tensor_ref (of one extent, and a matrix)", dims{n[0], n[1]}, dims{n[0] * n[1]});
    int const along = n[0] == 1 && (rank == 2 || rows == 1) ? 1 : 0;
    return {m.data(), {n[along]}, {step[along]}};
  }
};

template <eigen_tensor_like M>
  requires(!eigen_like<M>)
struct memory_view<M> {
  using element = detail::pointee<decltype(std::declval<M&>().data())>;
  static constexpr int rank = M::NumIndices;
  static constexpr bool row_major = M::Layout == 1;
  // A Tensor, which owns its memory, cannot be distinguished from a TensorMap.
  static constexpr bool column_major = rank > 1 && !row_major, owns = false;
  static_assert(rank <= max_rank, "varve: tensor_ref: values have at most eight dimensions");

  static constexpr bool can_be(int r) { return r == rank; }
  static constexpr dims extents(int) {
    dims r;
    for (int k = 0; k < rank; ++k) r.push_back(dyn);
    return r;
  }
  static constexpr strided<element> of(M& m, int) {
    strided<element> r{m.data(), {}, {}};
    if constexpr (rank > 0)
      for (int k = 0; k < rank; ++k) r.sizes.push_back(static_cast<index_t>(m.dimension(static_cast<std::size_t>(k))));
    r.strides = contiguous_strides(r.sizes);
    index_t step = 1;
    for (int k = 0; k < rank && !row_major; ++k) r.strides[k] = step, step *= r.sizes[k];
    return r;
  }
};

/// A type from which a `tensor_ref` can be made as a view.
template <class M>
concept viewable = requires { typename memory_view<std::remove_reference_t<M>>::element; };
/// A type from which a `tensor_ref` of elements `T` can be made as a view. If it owns its memory, it must be a
/// variable, unless `T` is const.
template <class M, class T>
concept viewable_as =
    viewable<M> && std::is_convertible_v<typename memory_view<std::remove_reference_t<M>>::element*, T*> &&
    (std::is_lvalue_reference_v<M> || std::is_const_v<T> || !memory_view<std::remove_reference_t<M>>::owns);

namespace detail {
/// A range with strides, whose elements may not be contiguous. (Used for types that are no view of a known kind.)
template <class R>
concept has_strides = requires(R& r) { r.strides(); } || requires(R& r) { r.stride(0); };
/// True if extents that are known in part may equal the wanted ones.
constexpr bool may_have_extents(dims const& known, dims const& wanted) {
  bool fits = known.n == wanted.n;
  for (int k = 0; fits && k < known.n; ++k) fits = known[k] == wanted[k] || known[k] == dyn || wanted[k] == dyn;
  return fits;
}
constexpr int extents_above_one(dims const& d) {
  int r = 0;
  for (extent n : d) r += n != 1;
  return r;
}

/// Returns the memory behind a view, with any strides. Some extents are known only at run time.
template <index_t... D, class M>
constexpr auto strided_view(M& m) {
  using V = memory_view<M>;
  constexpr dims wanted = ints<D...>::to_dims();
  constexpr bool fits = V::can_be(wanted.n) && may_have_extents(V::extents(wanted.n), wanted);
  static_assert(fits, "varve: tensor_ref: the view has other extents than the tensor_ref");
  if constexpr (fits) {
    auto const r = V::of(m, wanted.n);
    for (index_t s : r.strides)
      if (s < 0) refuse::argument_is_invalid("tensor_ref", "the view has a negative stride; copy it first");
    return r;
  } else return strided<typename V::element>{};
}

/// Returns the memory behind a view whose extents are known at compile time. It must be row-major. A vector may have
/// any extents with as many elements, like a range.
template <index_t... D, class M>
constexpr auto* row_major_data(M& m) {
  using V = memory_view<M>;
  constexpr dims wanted = ints<D...>::to_dims(), count{numel(wanted)};
  constexpr int rank = V::rank == 1 || !V::can_be(wanted.n) ? V::rank : wanted.n;
  constexpr bool fits = may_have_extents(V::extents(rank), V::rank == 1 ? count : wanted);
  constexpr bool ordered = !V::column_major || extents_above_one(wanted) < 2;
  static_assert(fits, "varve: tensor_ref: the view has other extents than the tensor_ref");
  static_assert(ordered, "varve: tensor_ref: extents known to the compiler mean row-major memory, and this matrix is "
                         "column-major; make it RowMajor, "
                         "view its transpose(), or leave the extents to run time (dyn)");
  if constexpr (fits && ordered) {
    auto const r = V::of(m, rank);
    if (!(r.sizes == (V::rank == 1 ? count : wanted))) refuse::shapes_do_not_match("tensor_ref", r.sizes, wanted);
    if (!layout{r.sizes, r.strides, 0, true}.contiguous())
      refuse::argument_is_invalid(
          "tensor_ref",
          "the elements of the view do not lie in row-major order; copy them, or leave the extents to run time (dyn)");
    return r.data;
  } else return static_cast<typename V::element*>(nullptr);
}

/// The `K`-th extent of a view; `dyn` if it is not known at compile time.
template <class M, int K>
inline constexpr index_t extent_of_view =
    memory_view<std::remove_reference_t<M>>::extents(memory_view<std::remove_reference_t<M>>::rank)[K];
template <class M>
using element_of_view = typename memory_view<std::remove_reference_t<M>>::element;
template <class M, int Rank>
concept view_of_rank = viewable<M> && memory_view<std::remove_reference_t<M>>::rank == Rank;
} // namespace detail

} // namespace varve
