// SPDX-License-Identifier: BSL-1.0
/// @file
/// What moves elements, beside plain loops over all indices: random shapes, strides (permuted, with gaps, reversed,
/// repeated) and dtypes.
#include "../kernel/kernel_test.hpp"

#include <varve/varve.hpp>

namespace vv = varve;
using namespace kernel_test;
using vv::tensor;

namespace {
template <class T>
tensor shown(strided<T>& s, dims const& sizes) {
  return tensor::from_blob(s.data(), sizes, s.strides, vv::dtype_of_type<T>());
}
/// Element of a contiguous tensor.
template <class T>
T& at(tensor const& t, dims const& i) {
  index_t o = 0;
  for (int d = 0; d < i.n; ++d) o = o * t.sizes()[d] + i[d];
  return t.data<T>()[o];
}
template <class T>
bool equal(tensor const& a, tensor const& b) {
  if (!(a.sizes() == b.sizes()) || a.dtype() != b.dtype()) return false;
  return a.numel() == 0 || std::memcmp(a.data<T>(), b.data<T>(), sizeof(T) * static_cast<std::size_t>(a.numel())) == 0;
}
template <class T>
tensor blank(dims const& sizes) {
  tensor t = vv::empty(sizes, vv::dtype_of_type<T>());
  if (t.numel() > 0) std::memset(t.raw(), 0, sizeof(T) * static_cast<std::size_t>(t.numel()));
  return t;
}
dims sizes_of(int rank, int most) {
  dims s = random_sizes(rank, most);
  if (rank > 0 && random_int(0, 12) == 0) s[random_int(0, rank - 1)] = 0;
  return s;
}

template <class T>
void check_cat(int rank) {
  int const axis = random_int(0, rank - 1), count = random_int(1, 5);
  dims sizes = sizes_of(rank, 7);
  if (sizes.n == 1 && sizes[0] == 0) sizes[0] = 1; // an empty vector is passed over
  std::vector<strided<T>> memory;
  std::vector<dims> shapes;
  std::vector<tensor> parts;
  dims all = sizes;
  all[axis] = 0;
  for (int k = 0; k < count; ++k) {
    sizes[axis] = random_int(rank == 1 ? 1 : 0, 9);
    shapes.push_back(sizes);
    memory.emplace_back(sizes, true);
    all[axis] += sizes[axis];
  }
  for (int k = 0; k < count; ++k)
    parts.push_back(shown(memory[static_cast<std::size_t>(k)], shapes[static_cast<std::size_t>(k)]));
  tensor expected = blank<T>(all);
  index_t start = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    visit_every_index(shapes[k], [&](dims const& i) {
      dims to = i;
      to[axis] += start;
      at<T>(expected, to) = memory[k][i];
    });
    start += shapes[k][axis];
  }
  CHECK(equal<T>(vv::cat(parts, axis), expected));
}
template <class T>
void check_slice_backward(int rank) {
  dims const whole = random_sizes(rank, 12);
  int const axis = random_int(0, rank - 1);
  index_t const from = random_int(0, static_cast<int>(whole[axis])), step = random_int(1, 3);
  index_t const to = random_int(static_cast<int>(from), static_cast<int>(whole[axis]));
  dims part = whole;
  part[axis] = (to - from + step - 1) / step;
  strided<T> g(part, true);
  tensor expected = blank<T>(whole);
  visit_every_index(part, [&](dims const& i) {
    dims place = i;
    place[axis] = from + i[axis] * step;
    at<T>(expected, place) = g[i];
  });
  CHECK(equal<T>(vv::slice_backward(shown(g, part), whole, dims{axis, from, to, step}), expected));
}
template <class T>
void check_regions(int rank) {
  dims const part = sizes_of(rank, 5);
  dims strides = part;
  index_t last = random_int(0, 3);
  index_t const offset = last;
  for (int d = 0; d < rank; ++d) {
    strides[d] = random_int(0, 6);
    last += part[d] > 0 ? index_t((part[d] - 1) * strides[d]) : 0;
  }
  dims const whole{last + 1 + random_int(0, 3)};
  strided<T> g(part, true);
  tensor expected = blank<T>(whole);
  auto const place = [&](dims const& i) {
    index_t o = offset;
    for (int d = 0; d < i.n; ++d) o += i[d] * strides[d];
    return o;
  };
  visit_every_index(part, [&](dims const& i) {
    T& sum = expected.data<T>()[place(i)];
    sum = static_cast<T>(sum + g[i]);
  });
  CHECK(equal<T>(vv::as_strided_backward(shown(g, part), whole, strides, dims{offset}), expected));
  if (vv::repeats_elements(part, strides)) return;
  strided<T> x(whole, true);
  visit_every_index(whole, [&](dims const& i) { expected.data<T>()[i[0]] = x[i]; });
  visit_every_index(part, [&](dims const& i) { expected.data<T>()[place(i)] = g[i]; });
  CHECK(equal<T>(vv::as_strided_scatter(shown(x, whole), shown(g, part), strides, dims{offset}), expected));
}
template <class T>
void check_indexing(int rank, int most) {
  dims const sizes = random_sizes(rank, most);
  int const axis = random_int(0, rank - 1);
  dims chosen = sizes;
  for (int d = 0; d < rank; ++d)
    chosen[d] = random_int(1, static_cast<int>(d == axis ? index_t(2 * most) : index_t(sizes[d])));
  strided<T> x(sizes, true), source(chosen, true);
  strided<std::int64_t> index(chosen, true);
  auto* const all = index.base();
  for (std::size_t k = 0; k < index.memory.size() / sizeof(std::int64_t); ++k)
    all[k] = random_int(0, static_cast<int>(sizes[axis]) - 1);
  tensor gathered = blank<T>(chosen), added = blank<T>(sizes);
  visit_every_index(sizes, [&](dims const& i) { at<T>(added, i) = x[i]; });
  visit_every_index(chosen, [&](dims const& i) {
    dims place = i;
    place[axis] = index[i];
    at<T>(gathered, i) = x[place];
    at<T>(added, place) = static_cast<T>(at<T>(added, place) + source[i]);
  });
  tensor const tx = shown(x, sizes), ti = shown(index, chosen), ts = shown(source, chosen);
  CHECK(equal<T>(vv::gather(tx, axis, ti), gathered));
  CHECK(equal<T>(vv::scatter_add(tx, axis, ti, ts), added));
  // one index out of range, wherever it stands, is refused and nothing is written
  auto const before = x.memory;
  auto& bad = all[static_cast<std::size_t>(random_int(0, static_cast<int>(index.memory.size() / 8) - 1))];
  bad = random_int(0, 1) ? index_t(sizes[axis]) : random_int(0, 1) ? -1 : INT64_MIN;
  bool seen = false;
  visit_every_index(chosen, [&](dims const& i) { seen = seen || &index[i] == &bad; });
  if (seen) {
    CHECK_THROWS_AS(vv::gather(tx, axis, ti), vv::index_error);
    CHECK_THROWS_AS(vv::scatter_add(tx, axis, ti, ts), vv::index_error);
    tensor out = vv::contiguous(vv::clone(ts)), old = vv::clone(ts);
    CHECK_THROWS_AS(vv::out(out)(vv::gather, tx, axis, ti), vv::index_error);
    CHECK(equal<T>(out, old));
  }
  CHECK(x.memory == before);
}
template <class T>
void check_all() {
  for (int round = 0; round < 60; ++round) {
    int const rank = 1 + round % 4;
    check_cat<T>(rank);
    check_slice_backward<T>(rank);
    check_regions<T>(rank);
    check_indexing<T>(rank, rank < 3 ? 150 / (rank * rank) : 5);
  }
}
} // namespace

TEST_CASE("cat, slices put back, regions, gather, scatter_add equal plain loops for any strides", "[op][moving]") {
  check_all<bool>();
  check_all<std::uint8_t>();
  check_all<std::int32_t>();
  check_all<std::int64_t>();
  check_all<float>();
  check_all<double>();
}
TEST_CASE("gather and scatter_add of rank 0, of no elements, and where there are none to choose", "[op][moving]") {
  tensor const x{{2.5}}, one = vv::sum(x), none = vv::zeros({0, 3}, vv::dtype::float64);
  tensor const first = vv::zeros({}, vv::dtype::int64), second = vv::ones({}, vv::dtype::int64);
  CHECK(vv::gather(one, 0, first).item<double>() == 2.5);
  CHECK(vv::scatter_add(one, 0, first, one).item<double>() == 5);
  CHECK_THROWS_AS(vv::gather(one, 0, second), vv::index_error);
  CHECK_THROWS_AS(vv::gather(none, 0, vv::zeros({1, 3}, vv::dtype::int64)), vv::index_error);
  CHECK_THROWS_AS(vv::scatter_add(none, 0, vv::zeros({1, 3}, vv::dtype::int64), vv::ones({1, 3}, vv::dtype::float64)),
                  vv::index_error);
  CHECK(vv::gather(none, 0, vv::zeros({0, 3}, vv::dtype::int64)).sizes() == dims{0, 3});
}
TEST_CASE("gather and scatter_add by many indices that are stored by columns", "[op][moving]") {
  tensor const x = vv::reshape(vv::to(vv::arange(70 * 90), vv::dtype::float32), dims{70, 90});
  tensor const at = vv::empty({90, 70}, vv::dtype::int64), turned = vv::transpose(at);
  for (index_t k = 0; k < at.numel(); ++k) at.data<std::int64_t>()[k] = (k * 31 + k / 7) % 70;
  for (int const axis : {0, 1}) {
    CHECK(equal<float>(vv::gather(x, axis, turned), vv::gather(x, axis, vv::contiguous(turned))));
    CHECK(equal<float>(vv::scatter_add(x, axis, turned, x), vv::scatter_add(x, axis, vv::contiguous(turned), x)));
  }
  at.data<std::int64_t>()[6000] = 70;
  CHECK_THROWS_AS(vv::gather(x, 0, turned), vv::index_error);
  CHECK_THROWS_AS(vv::scatter_add(x, 0, turned, x), vv::index_error);
  CHECK_THROWS_AS(vv::gather(x, 0, vv::to(turned, vv::dtype::int32)), vv::dtype_error);
}

TEST_CASE("one_hot equals the plain loop for any strides", "[op][moving]") {
  for (int round = 0; round < 60; ++round) {
    dims const sizes = sizes_of(round % 4, 9);
    int const classes = random_int(1, 12);
    strided<std::int64_t> index(sizes, true);
    for (std::size_t k = 0; k < index.memory.size() / 8; ++k) index.base()[k] = random_int(0, classes - 1);
    dims wide = sizes;
    wide.push_back(classes);
    tensor expected = blank<std::int64_t>(wide);
    visit_every_index(sizes, [&](dims const& i) {
      dims to = i;
      at<std::int64_t>(expected, to.push_back(index[i])) = 1;
    });
    CHECK(equal<std::int64_t>(vv::one_hot(shown(index, sizes), classes), expected));
    if (vv::numel(sizes) == 0) continue;
    index[dims{sizes}.n ? [&] {
      dims z = sizes;
      for (int d = 0; d < z.n; ++d) z[d] = sizes[d] - 1;
      return z;
    }()
                        : dims{}] = classes;
    CHECK_THROWS_AS(vv::one_hot(shown(index, sizes), classes), vv::index_error);
  }
}
TEST_CASE("factories fill what they make, of every dtype and size", "[op][moving]") {
  for (auto type :
       {vv::dtype::bool_, vv::dtype::uint8, vv::dtype::int32, vv::dtype::int64, vv::dtype::float32, vv::dtype::float64})
    for (index_t n : {0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 129, 1000}) {
      tensor const f = vv::to(vv::full({n}, 3, type), vv::dtype::float64),
                   a = vv::to(vv::arange(n, type), vv::dtype::float64);
      tensor const z = vv::to(vv::zeros({n}, type), vv::dtype::float64);
      bool right = true;
      for (index_t k = 0; k < n; ++k) {
        double const number = type == vv::dtype::bool_   ? k != 0
                              : type == vv::dtype::uint8 ? double(k % 256)
                                                         : double(k);
        right = right && f.data<double>()[k] == (type == vv::dtype::bool_ ? 1 : 3) && z.data<double>()[k] == 0 &&
                a.data<double>()[k] == number;
      }
      CHECK(right);
    }
}

namespace {
template <class A, class B>
void check_turned(dims const& sizes, dims const& order) {
  dims turned = sizes;
  for (int d = 0; d < sizes.n; ++d) turned[d] = sizes[static_cast<int>(order[d])];
  tensor const a = vv::to(vv::arange(vv::numel(sizes)), vv::dtype_of_type<A>());
  tensor const b = vv::to(vv::arange(vv::numel(sizes)), vv::dtype_of_type<B>());
  tensor const x = vv::permute(vv::reshape(a, sizes), order), y = vv::reshape(b, turned);
  tensor const sum = x + y, flags = x < y, other = vv::add(y, x);
  bool right = sum.sizes() == turned && flags.sizes() == turned;
  vv::on_dtype(sum.dtype(), "test", [&]<class T>() {
    visit_every_index(turned, [&](dims const& i) {
      index_t o = 0, p = 0;
      for (int d = 0; d < i.n; ++d) {
        index_t stride = 1;
        for (int e = static_cast<int>(order[d]) + 1; e < sizes.n; ++e) stride *= sizes[e];
        o += i[d] * stride, p = p * turned[d] + i[d];
      }
      T const u = static_cast<T>(a.data<A>()[o]), v = static_cast<T>(b.data<B>()[p]);
      right = right && at<T>(sum, i) == static_cast<T>(u + v) && at<T>(other, i) == static_cast<T>(u + v) &&
              at<bool>(flags, i) == (u < v);
    });
  });
  CHECK(right);
}
} // namespace
TEST_CASE("operands stored by columns, large and small, of one dtype and of two", "[op][moving]") {
  for (dims const& sizes : {dims{3, 5}, dims{70, 80}, dims{257, 33}, dims{1, 5000}, dims{5000, 1}}) {
    check_turned<float, float>(sizes, {1, 0});
    check_turned<float, double>(sizes, {1, 0});
    check_turned<std::int64_t, float>(sizes, {1, 0});
    check_turned<std::uint8_t, std::int32_t>(sizes, {1, 0});
  }
  check_turned<double, double>({9, 20, 31}, {0, 2, 1});
  check_turned<float, std::int32_t>({9, 20, 31}, {2, 0, 1});
  check_turned<float, float>({9, 1, 20, 31}, {3, 1, 0, 2});
}
TEST_CASE("eye: every dtype and size", "[op][moving]") {
  for (auto type :
       {vv::dtype::bool_, vv::dtype::uint8, vv::dtype::int32, vv::dtype::int64, vv::dtype::float32, vv::dtype::float64})
    for (index_t n : {0, 1, 2, 17, 70}) {
      tensor const e = vv::eye(n, type), wide = vv::to(e, vv::dtype::float64);
      bool right = e.dtype() == type && e.sizes() == dims{n, n};
      for (index_t k = 0; k < n * n; ++k) right = right && wide.data<double>()[k] == (k / n == k % n);
      CHECK(right);
    }
  CHECK_THROWS_AS(vv::eye(-1), vv::error);
}
