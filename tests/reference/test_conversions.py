"""Rényi divergences, ρ and trade-off curves against high precision, and with each other."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from discreet.reference.conversions import gaussian, renyi, trade_off, zero_concentrated
from discreet.trusted.ring_a.loss import (
    Approximate,
    Batch,
    DiscreteLaplace,
    EquivalentGaussian,
    GaussianLoss,
    Loss,
    Pure,
)
from discreet.trusted.ring_b.further_losses import BoundedRange, LaplaceLoss, SubsampledGaussian, ZeroConcentrated
from discreet.trusted.ring_c.batch import compose
from kinds import some
from tight_oracles import laplace_atoms, lattice_atoms, normal_tail

KIND = "exact"

ORDERS = (1.01, 1.5, 2.0, 7.3, 40.0, 900.0)
BOUNDED: list[Loss] = [
    *(Pure(e) for e in ("0.001", "0.3", "2", "9")),
    *(LaplaceLoss(e) for e in ("0.001", "0.3", "2", "9")),
    *(DiscreteLaplace(e, n) for e in ("0.01", "1", "6") for n in (1, 2, 3, 20)),
]


def atoms(loss: Loss) -> list[tuple[mp.mpf, mp.mpf]]:
    """Losses and P-masses; continuous noise by fine quadrature."""
    epsilon = Fraction(loss.pure)
    if isinstance(loss, LaplaceLoss):
        return laplace_atoms(epsilon, 12, nodes=20)
    return lattice_atoms(epsilon, loss.sensitivity if isinstance(loss, DiscreteLaplace) else 1)


def divergence(loss: Loss, order: float) -> mp.mpf:
    t = mp.mpf(order) - 1
    return mp.log(mp.fsum(mass * mp.e ** (t * place) for place, mass in atoms(loss))) / t


@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
def test_bounded_losses(loss: Loss) -> None:
    """Rényi divergence close above the truth; and at most α·ρ, with ρ the limit for α → 1."""
    rho = zero_concentrated(loss)
    with mp.workdps(60):
        shown = mp.mpf(rho.numerator) / rho.denominator
        mean = mp.fsum(place * mass for place, mass in atoms(loss))
        assert mean * (1 - mp.mpf("1e-10")) <= shown <= mean * (1 + mp.mpf("1e-10"))
        if not isinstance(loss, LaplaceLoss):
            assert mean <= shown <= mean * (1 + mp.mpf("1e-18"))
        for order in ORDERS:
            exact, found = divergence(loss, order), renyi([loss], order)
            close = order <= 40 or not isinstance(
                loss, LaplaceLoss
            )  # the rule of the quadrature is too coarse elsewhere
            assert exact * (1 - mp.mpf("1e-10")) <= found or not close
            assert not close or found <= exact * (1 + mp.mpf("1e-9")) + 2e-14 * (1 + order * float(loss.pure)) / (
                order - 1
            )
            assert exact <= order * shown * (1 + mp.mpf("1e-10")) or not close
            assert found <= order * float(rho) * (1 + 1e-12)


def test_laplace_in_closed_form() -> None:
    """Published forms: D₂ of Laplace noise and ρ = 1/e at ε = 1."""
    assert float(zero_concentrated(LaplaceLoss(1))) == pytest.approx(0.36787944117144233, rel=1e-15)
    with mp.workdps(40):
        exact = mp.log((2 * mp.e + mp.e**-2) / 3)
        assert exact <= renyi([LaplaceLoss(1)], 2.0) <= exact * (1 + mp.mpf("1e-12"))


def test_other_losses() -> None:
    assert zero_concentrated(GaussianLoss("0.3")) == Fraction(9, 200)
    assert zero_concentrated(ZeroConcentrated("0.3")) == Fraction(3, 10)
    assert zero_concentrated(BoundedRange("0.2")) == Fraction(1, 200)
    assert zero_concentrated(BoundedRange(50)) <= 50
    assert zero_concentrated(Approximate("0.2", 0)) == zero_concentrated(Pure("0.2"))
    assert zero_concentrated(DiscreteLaplace(1, 0)) == 0 == zero_concentrated(LaplaceLoss(0))
    assert zero_concentrated(Pure(5000)) <= 5000 >= zero_concentrated(DiscreteLaplace(5000, 2))
    assert zero_concentrated(Batch((GaussianLoss(1), GaussianLoss(2)))) == Fraction(5, 2)
    assert zero_concentrated(SubsampledGaussian(2, "0.1", 8)) == 1
    assert renyi({GaussianLoss(1): 3, ZeroConcentrated(1): 1}, 4.0) == pytest.approx(10, rel=1e-12)
    assert renyi([Batch((GaussianLoss(1), Pure(1)))], 4.0) == pytest.approx(renyi([GaussianLoss(1), Pure(1)], 4.0))
    for loss in (Approximate(1, "1e-9"), EquivalentGaussian(1, "1e-9")):
        for view in (zero_concentrated, gaussian, lambda loss: renyi([loss], 2.0)):
            with pytest.raises(ValueError, match="delta > 0"):
                view(loss)
    with pytest.raises(ValueError, match="no such bound"):
        gaussian(ZeroConcentrated(1))
    with pytest.raises(ValueError, match="order"):
        renyi([], 1.0)


@pytest.mark.parametrize(
    ("sigma", "rate"),
    some([("0.7", "0.5"), ("2", "1"), ("1.1", "0.01"), ("4", "0.001")], pytest.mark.power, quick=2),
)
def test_a_step_of_the_subsampled_gaussian(sigma: str, rate: str) -> None:
    """Both directions by quadrature: the first is met at whole orders, and no order exceeds the bound."""
    with mp.workdps(30):
        s, q = mp.mpf(sigma), mp.mpf(rate)
        places = mp.linspace(-40 * s, 40 * s + 12, 1201)

        def moment(order: float, removed: bool) -> mp.mpf:
            ratio = [1 - q + q * mp.e ** ((2 * x - 1) / (2 * s * s)) for x in places]
            weight = [mp.npdf(x, 0, s) for x in places]
            power = mp.mpf(order) if removed else 1 - mp.mpf(order)
            total = mp.fsum(w * r**power for w, r in zip(weight, ratio, strict=True)) * (places[1] - places[0])
            return mp.log(total) / (order - 1)

        for order in (2.0, 3.5, 9.0):
            found = renyi([SubsampledGaussian(sigma, rate, 1)], order)
            removed = moment(order, True)
            assert moment(order, False) <= removed + 1e-20
            assert removed <= found
            assert order % 1 or found <= removed * (1 + mp.mpf("1e-9")) + 1e-13
    assert renyi([SubsampledGaussian(sigma, rate, 7)], 3.0) == pytest.approx(
        renyi({SubsampledGaussian(sigma, rate, 1): 7}, 3.0)
    )


def test_the_gaussian_that_laplace_noise_stays_behind() -> None:
    """At equal false alarms, Laplace noise's misses are no fewer than those of its μ; near α = e^(−ε/2)/2 they meet."""
    for epsilon in ("0.01", "1", "8"):
        mu = gaussian(LaplaceLoss(epsilon))
        with mp.workdps(40):
            e, root = mp.mpf(epsilon), mp.sqrt(mp.mpf(mu.numerator) / mu.denominator)
            meets = mp.e ** (-e / 2) / 2
            assert meets * (1 - mp.mpf("1e-9")) <= normal_tail(root / 2) <= meets
            for k in range(1, 60):
                z = mp.mpf(k) / 10 - 3 + root / 2  # the test's threshold in standard deviations
                alarm, miss = normal_tail(z), normal_tail(root - z)
                steep, flat = 1 - alarm * mp.e**e, mp.e**-e * (1 - alarm)
                behind = steep if alarm < mp.e**-e / 2 else flat if alarm > mp.mpf(1) / 2 else mp.e**-e / (4 * alarm)
                assert miss <= behind * (1 + mp.mpf("1e-12"))
    assert gaussian(Batch((LaplaceLoss(1), GaussianLoss(1)))) == gaussian(LaplaceLoss(1)) + 1
    assert gaussian(LaplaceLoss("1e-9")) == Pure("1e-9").mu_squared


ALARMS = ("1e-9", "0.01", "0.3", "0.5", "0.9", "0.999")


def test_trade_off_in_closed_form() -> None:
    """Randomised response's two straight pieces; Gaussian noise's curve; an event of probability δ moves it down."""
    for alarm in ALARMS:
        a = float(alarm)
        exact = max(1 - mp.e * a, (1 - a) / mp.e)
        assert exact * (1 - 1e-7) - 3e-9 <= trade_off(compose([Pure(1)]), alarm) <= exact
        with mp.workdps(40):
            z = mp.findroot(lambda z, alarm=alarm: mp.log(normal_tail(z) / mp.mpf(alarm)), 0.1)
            exact = normal_tail(1 - z)
            assert exact * (1 - mp.mpf("1e-12")) <= trade_off(compose([GaussianLoss(1)]), alarm) <= exact
        with_keys = compose([EquivalentGaussian(1, "1e-3")])
        assert exact - 0.0011 <= trade_off(with_keys, alarm) <= exact
    for batch in (
        compose([GaussianLoss(1)]),
        compose([Pure(1), LaplaceLoss(1)]),
        compose([EquivalentGaussian(0, "0.1")]),
    ):
        assert 0.89 <= trade_off(batch, 0) <= 1
        assert trade_off(batch, 1) == 0
    with pytest.raises(ValueError, match="rate"):
        trade_off(compose([]), 2)


def test_trade_off_of_many_laplace_releases() -> None:
    """Between the curves of the two Gaussians that enclose a thousand releases of ε = .01, μ = .3157289 ± .0003."""
    batch = compose({LaplaceLoss("0.01"): 1000})
    for alarm in ALARMS:
        least, most = (trade_off(compose([GaussianLoss(mu)]), alarm) for mu in ("0.3161", "0.3154"))
        assert least * 0.9999 - 1e-9 <= trade_off(batch, alarm) <= most * 1.0001


def test_what_is_beyond_composition_still_has_its_sum() -> None:
    assert trade_off(compose([Pure(500)]), "1e-3") <= 1e-9
    assert trade_off(compose([Pure(500)]), 0) == pytest.approx(1)
