"""The mean age of 1000 people: an exact sum and an exact count, each with exact noise."""

from discreet.mechanisms import Bounds, DiscreteLaplace, Laplace

ages = [20 + place * 7919 % 60 for place in range(1000)]
bounds = Bounds(0, 100)  # rows beyond are clamped, NaN counts as 0

total = Laplace(epsilon=0.5, sensitivity=bounds.sensitivity("add-remove"))
people = DiscreteLaplace(epsilon=0.5)
mean = total.release(bounds.sum(ages)) / max(1, people.release(len(ages)))

print(f"the mean age is about {mean:.1f}; it was {sum(ages) / len(ages):.1f}")
print(f"cost: epsilon = {(total.cost + people.cost).epsilon(delta=0):.3g}")
