from discreet.accounting.loss import Laplace as Laplace
from discreet.accounting.loss import Loss
from discreet.accounting.loss import SubsampledGaussian as SubsampledGaussian

Charged = Loss
