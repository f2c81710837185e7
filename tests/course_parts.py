"""The course as its pages show it, read once: each reading counts the words of every lab."""

from places import ROOT

from miniquant.lab.authoring.course import read_course

PARTS = read_course(ROOT)
