"""Logistic regressions side by side equal those of scikit-learn and a plain minimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from idfsmec.solver.logistic import fit_logistic

rng = np.random.default_rng(0)
INPUTS = rng.normal(size=(50, 3))
DESIGN = np.column_stack([INPUTS, np.ones(50)])
LABELS = rng.random((4, 50)) < 0.4
WEIGHTS = rng.uniform(0.5, 2.0, (4, 50))


def test_each_fit_is_that_of_scikit_learn_with_its_labels_and_weights():
    # An intercept without penalty, as scikit-learn's.
    coefs, _ = fit_logistic(DESIGN, LABELS, WEIGHTS, np.array([0.5, 0.5, 0.5, 0.0]))
    for found, labels, weights in zip(coefs, LABELS, WEIGHTS, strict=True):
        model = LogisticRegression(C=2.0, tol=1e-12, solver="newton-cholesky")
        model.fit(INPUTS, labels, sample_weight=weights)
        assert_allclose(found, [*model.coef_[0], *model.intercept_], atol=1e-8)


def test_the_prior_mean_and_the_curvature_are_those_of_the_penalised_likelihood():
    precision, centre = np.array([0.25, 1.0, 2.0, 0.1]), np.array([0.0, 1.0, -1.0, 0.5])

    def loss(coef):
        values = DESIGN @ coef
        likelihood = WEIGHTS[0] @ (np.logaddexp(0, values) - LABELS[0] * values)
        return likelihood + 0.5 * precision @ (coef - centre) ** 2

    coefs, curvatures = fit_logistic(DESIGN, LABELS[0], WEIGHTS[:1], precision, centre)
    assert_allclose(coefs[0], minimize(loss, centre, tol=1e-10).x, atol=1e-5)
    step = 1e-4 * np.eye(4)
    second = [
        [
            (loss(coefs[0] + a + b) - loss(coefs[0] + a - b) - loss(coefs[0] - a + b)
             + loss(coefs[0] - a - b)) / 4e-8
            for b in step
        ]
        for a in step
    ]  # fmt: skip
    assert_allclose(curvatures[0], second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_separable_classes_have_finite_coefficients(scale):
    labels = DESIGN[:, 0] > 0
    coefs, _ = fit_logistic(scale * DESIGN, labels, np.ones((1, 50)), np.full(4, 0.1), max_iter=50)
    gradient = 0.1 * coefs[0] + scale * DESIGN.T @ (
        1 / (1 + np.exp(-scale * DESIGN @ coefs[0])) - labels
    )
    assert_allclose(gradient, 0, atol=1e-6)


def test_steps_that_overshoot_are_halved_until_the_minimum_is_reached():
    """A slope of 1 that few samples contradict: whole steps swing past the minimum."""
    left = np.random.default_rng(4).dirichlet([1, 1, 1], 23)[:, 0]
    x = np.log(np.clip(left, 0.005, 0.995) / (1 - np.clip(left, 0.005, 0.995)))
    design = np.column_stack([np.ones(23), x])
    positive, weights = np.arange(23) % 3 == 1, np.full((2, 23), 1.5)
    weights[1, ::2] = 3.0
    precision, centre = np.array([0.25, 1.0]), np.array([0.0, 1.0])
    coefs, _ = fit_logistic(design, positive, weights, precision, centre)
    for found, w in zip(coefs, weights, strict=True):
        chance = 1 / (1 + np.exp(-design @ found))
        gradient = (w * (chance - positive)) @ design + precision * (found - centre)
        assert_allclose(gradient, 0, atol=1e-6)
