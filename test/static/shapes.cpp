// SPDX-License-Identifier: BSL-1.0
// Facts, shapes, broadcasting and views of static values.
#include <varve/varve.hpp>
namespace vv = varve;
using vv::array;
using vv::dims;

// facts: integer lists as types or as data, computed by one text
constexpr auto twice = [](dims const& d) { return dims{2 * d[0], d.n}; };
static_assert(std::is_same_v<decltype(vv::on_dims(twice, vv::shape<5, 7>)), vv::ints<10, 2>>);
static_assert(vv::on_dims(twice, dims{5, 7}) == dims{10, 2});
static_assert(vv::shape<2, 3>.to_dims() == dims{2, 3} && vv::shape<>.to_dims().empty());
static_assert(vv::numel(dims{}) == 1 && vv::numel(dims{2, 0, 3}) == 0 &&
              vv::contiguous_strides(dims{2, 3, 4}) == dims{12, 4, 1});
static_assert(vv::wrap_axis(-1, 3) == 2 && vv::wrap_axis(-1, 0) == 0 && vv::wrap_axis(0, 0) == 0);
static_assert(dims{1, 2}.insert(1, 9) == dims{1, 9, 2} && dims{1, 2, 3}.erase(1) == dims{1, 3} &&
              dims{1, 2, 3}.sub(1, 3) == dims{2, 3});
static_assert(vv::broadcast({3, 1}, {2, 1, 4}) == dims{2, 3, 4} && vv::broadcast({}, {2}) == dims{2} &&
              vv::broadcast({0}, {1}) == dims{0});
static_assert(vv::is_symbol(vv::symbol("n")) && vv::symbol("n") != vv::symbol("m") &&
              vv::symbol("n") == vv::symbol("n") && !vv::is_symbol(1 << 30));

// arrays
constexpr array<double, 2, 3> a{1, 2, 3, 4, 5, 6};
static_assert(a(1, 2) == 6 && a.data[4] == 5 && a.size() == 6 && array<int, 0>::size() == 0);
static_assert(array<double>{3} + 1.0 == 4); // rank 0 is a number
static_assert(vv::rank_of(a) == 2 && vv::to_dims(vv::shape_of(a)) == dims{2, 3});

// broadcasting
static_assert(vv::equal(a + array<double, 3>{10, 20, 30}, array<double, 2, 3>{11, 22, 33, 14, 25, 36}));
static_assert(vv::equal(array<double, 2, 1>{1, 2} * array<double, 3>{1, 2, 3}, array<double, 2, 3>{1, 2, 3, 2, 4, 6}));
static_assert(vv::equal(1 - array<double, 2>{1, 2}, array<double, 2>{0, -1}));
static_assert(std::is_same_v<decltype(array<double, 0>{} + array<double, 1>{}), array<double, 0>>);
static_assert(vv::equal(vv::maximum(array<int, 3>{1, 5, 3}, 2), array<int, 3>{2, 5, 3}));
static_assert(vv::equal(vv::clamp(array<double, 4>{-2, 0.5, 1, 3}, 0.0, 1.0), array<double, 4>{0, 0.5, 1, 1}));

// reductions
static_assert(vv::sum(a) == 21 && vv::equal(vv::sum(a, vv::axis<-1>), array<double, 2>{6, 15}) &&
              vv::equal(vv::sum(a, vv::axis<0>, vv::keepdim), array<double, 1, 3>{5, 7, 9}));
static_assert(vv::sum(a, vv::axis<0, 1>) == 21 && vv::sum(array<double, 0>{}) == 0 && vv::sum(5.0) == 5);
static_assert(vv::equal(vv::mean(a, vv::axis<1>), array<double, 2>{2, 5}) &&
              vv::equal(vv::amax(a, vv::axis<0>), array<double, 3>{4, 5, 6}) && vv::amin(a) == 1);
static_assert(vv::argmax(a) == 5 &&
              vv::equal(vv::argmax(a, vv::axis<1>, vv::keepdim), array<std::int64_t, 2, 1>{2, 2}));

// views
static_assert(vv::equal(vv::reshape(a, vv::shape<3, -1>), array<double, 3, 2>{1, 2, 3, 4, 5, 6}));
static_assert(vv::equal(vv::transpose(a), array<double, 3, 2>{1, 4, 2, 5, 3, 6}) &&
              vv::equal(vv::permute(a, vv::axis<-1, 0>), vv::transpose(a)));
static_assert(vv::equal(vv::reshape(vv::transpose(a), vv::shape<6>), array<double, 6>{1, 4, 2, 5, 3, 6}));
static_assert(vv::equal(vv::slice(a, vv::axis<1>, vv::range<0, vv::end, 2>), array<double, 2, 2>{1, 3, 4, 6}));
static_assert(vv::equal(vv::slice(a, vv::axis<-1>, vv::range<-2, -1>), array<double, 2, 1>{2, 5}) &&
              std::is_same_v<decltype(vv::slice(a, vv::axis<0>, vv::range<2, 1>)), array<double, 0, 3>>);
static_assert(vv::equal(vv::select(a, vv::axis<0>, vv::axis<-1>), array<double, 3>{4, 5, 6}));
static_assert(vv::equal(vv::expand(array<double, 2, 1>{1, 2}, vv::shape<2, -1, 2>),
                        array<double, 2, 2, 2>{1, 1, 2, 2, 1, 1, 2, 2}));
static_assert(std::is_same_v<decltype(vv::unsqueeze(a, vv::axis<-1>)), array<double, 2, 3, 1>> &&
              std::is_same_v<decltype(vv::squeeze(vv::unsqueeze(a, vv::axis<0>))), array<double, 2, 3>>);

// joins and indexing
static_assert(vv::equal(vv::cat(std::tuple{a, array<double, 1, 3>{7, 8, 9}}, vv::axis<0>),
                        array<double, 3, 3>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
static_assert(vv::equal(vv::cat(std::tuple{array<float, 1>{1}, array<double, 2>{2, 3}, array<int, 1>{4}}),
                        array<double, 4>{1, 2, 3, 4}));
static_assert(vv::equal(vv::stack(std::tuple{1.0, 2.0}), array<double, 2>{1, 2}));
static_assert(vv::equal(vv::stack(std::array{a, a}, vv::axis<1>),
                        array<double, 2, 2, 3>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
static_assert(vv::equal(vv::gather(a, vv::axis<1>, array<std::int64_t, 2, 2>{2, 0, 1, 1}),
                        array<double, 2, 2>{3, 1, 5, 5}));
static_assert(vv::equal(vv::scatter_add(vv::zeros<double, 3>(), vv::axis<0>, array<std::int64_t, 4>{0, 2, 2, 0},
                                        array<double, 4>{1, 2, 3, 4}),
                        array<double, 3>{5, 0, 5}));
static_assert(vv::equal(vv::one_hot(array<std::int64_t, 2>{2, 0}, vv::axis<3>),
                        array<std::int64_t, 2, 3>{0, 0, 1, 1, 0, 0}));

// contractions
static_assert(vv::equal(vv::matmul(a, array<double, 3, 2>{1, 0, 0, 1, 1, 1}), array<double, 2, 2>{4, 5, 10, 11}));
static_assert(vv::equal(vv::matmul(a, array<double, 3>{1, 1, 1}), array<double, 2>{6, 15}) &&
              vv::matmul(array<double, 2>{1, 2}, array<double, 2>{3, 4}) == 11);
static_assert(std::is_same_v<decltype(vv::matmul(array<float, 5, 1, 2, 3>{}, array<float, 4, 3, 2>{})),
                             array<float, 5, 4, 2, 2>>);
static_assert(vv::dot(array<double, 2>{1, 2}, array<double, 2>{3, 4}) == 11);

// several views at a time
constexpr array<double, 3, 2> rows{1, 2, 3, 4, 5, 6};
static_assert(vv::unbind(rows).size() == 3 && vv::unbind(rows)[1][1] == 4 && vv::unbind(rows, vv::axis<-1>)[1][2] == 6);
static_assert(vv::equal(vv::unbind(rows, vv::axis<1>)[0], array<double, 3>{1, 3, 5}));
static_assert(std::tuple_size_v<decltype(vv::split(rows, vv::axis<2>))> == 2 &&
              vv::equal(std::get<1>(vv::split(rows, vv::axis<2>)), array<double, 1, 2>{5, 6}));
static_assert(vv::equal(std::get<1>(vv::chunk(rows, vv::axis<2>, vv::axis<1>)), array<double, 3, 1>{2, 4, 6}));
static_assert(vv::equal(vv::grad([](auto x) {
                          auto const u = vv::unbind(x);
                          return vv::sum(u[0] * u[2]);
                        })(rows),
                        array<double, 3, 2>{5, 6, 0, 0, 1, 2}));
