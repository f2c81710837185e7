"""The course in Spanish: the catalogues of what is to be translated, and the notebooks and pages made with them.

The English sources are the only ones. ``es/locale`` has a catalogue of GNU gettext for each notebook and page,
``src/miniquant/locale/es`` one for the lessons of each lab and one for the engine's sentences. ``es/notebooks`` is made
from the English student notebooks with them, and executed; ``es/book`` from the English pages.

    python tools/spanish.py --extract              bring the catalogues up to date with the English sources
    python tools/spanish.py [--keep-outputs] [LAB ...]     make the pages and notebooks; with it execute nothing
    python tools/spanish.py --check                fail if a catalogue or a notebook is not what the sources give
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from spanish_sources import Change, in_code, in_text, messages, of_page_maker, of_script
from tqdm import tqdm

from miniquant.core import language
from miniquant.core.language import speaking, translated
from miniquant.lab import exercises, find
from miniquant.lab.authoring.cells import source_of
from miniquant.lab.authoring.course import SOURCE, read_course
from miniquant.lab.authoring.reading import time_of, with_time, without_time
from miniquant.lab.spec import Exercise
from notebooks import ROOT, chosen, execute, skeleton, solved, student, with_stored_outputs

sys.modules.setdefault("rfc3987_syntax", None)  # tools/without_iri.py says why

import nbformat  # noqa: E402
from nbformat import NotebookNode  # noqa: E402

NAME = "es"
SPANISH = ROOT / NAME
LABS = tuple(f"{number:02}" for number in range(14))  # parts 0 to III
PAGES = ("index", "part-1-artifact", "part-2-quantization", "part-3-assignment", "gguf-lite", "glossary")
ENGINE = ("lab", "evaluate", "inspect", "plots", "core/errors.py", "lessons/shared", "lessons/__init__.py")
UNSEEN = ("lab/grading", "lab/authoring")  # for teachers and authors, in English
AUTHORING = ("lab/authoring/cells.py", "lab/authoring/reading.py", "lab/authoring/course.py")
LIVE = ("boot", "editor", "live", "llama", "outputs", "python", "saved")  # what a lab's page loads
THEME = (  # of the theme, which has them in English alone
    *("Skip to main content", "Back to top", "Contents", "Toggle primary sidebar", "Toggle secondary sidebar"),
    *("Pages of the course", "On this page", "Next", "Previous", "next", "previous", "Search", "Print to PDF", "Home"),
    *("light/dark", "Color mode", "Light", "Dark", "System Settings", "By {0}", "© Copyright {0}.", "Site Navigation"),
    *("Index", "place", "places", "cell {0}", "of", ". Run that cell first.", "byte {0} has", "bytes {0} and {1} have"),
    *(
        "time",
        "scales",
        "bytes",
        "error",
        "needs {0}",
        "{0} exercise{1}",
        "1 lab",
        "{0} labs",
        "Part {0}: {1}",
        "Copy {0}",
    ),
    "Weight {0} of {1}: {2}, level {3}, comes back as {4}; in the file, {5}.",
    "byte {0} is {1}: its low nibble, {2}, is {3}",
    "byte {0} is {1}: its high nibble, {2}, is {3}",
    "{0}: {1} of scales (bold), {2} of integers; {3} bits a weight, {4} times smaller than float32",
    "{0} weights",
)
JOINED = (  # what the engine joins of several strings, and single words that fields hold
    "Bad input is accepted: {0}",
    "The function refuses good input, {0}",
    "The type is right, {0}",
    "The type of the results is right, {0}",
    "{0} are wrong",
    "{0} is wrong",
    "{0} show this",
    "exactly those {0}, {1}",
    "byte {0} differs, {1} expected, {2} found",
    "byte {0} differs, {1} expected, {2} found; {3} more bytes differ",
    "in {0} (bytes {1} to {2}): {3}",
    "in {0} (byte {1}): {2}",
    "the element {0} differs ({1})",
    "the first of {0} among {1}",
    "this input must be refused with {0}",
    "this input must be refused with {0}, and another error was raised",
    "this input must be refused with {0}, and {1}",
    "another error was raised",
    "your function changes its argument in place: {0}",
    "work on a copy",
    "{0} raised",
    "the last digits differ, {0}",
    "Every wrong value is off by at most a millionth of the right one",
    "the first byte that is wrong is byte {0}, counted from 0",
    "wrong inputs are, for example, {0}",
    "a wrong input is {0}",
    "the bytes cannot be loaded: {0}",
    "the call ends without an error on {0} of {1} inputs that must raise {2}",
    "and the shape is different",
    "your function changed the mode of a model",
    "nearly all of those {0} are wrong, and no others",
    "exactly those {0} are wrong",
    "the solution refuses it with {0}",
    "With one small change {0}, {1}.",
    "With the same small change {0}, {1}.",
    "With a change of order {0}, {1}.",
    "leaves out what is added to {0}",
    "leaves out what is subtracted from {0}",
    "where there are more than {0} bytes",
    "at {0}",
    "{0} in line {1}",
    "in line {0}",
    "or that {0}",
    "on {0} further inputs",
    "further inputs",
    "cases",
    "first",
    "last",
    "second",
    "third",
    "fourth",
    "row",
    "group",
    "value",
    "item",
    "column",
    "place",
    "rows",
    "values",
    "items",
    "bytes",
    "results",
    "inputs",
    "characters",
    "keys",
    "the values",
    "the shape",
    "the type",
    "the length",
    "the bytes",
    "the keys",
    "before",
    "after",
    "early",
    "late",
    "mean",
    "largest",
    "smallest",
    "sum",
    "begins",
    "ends",
    "adds",
    "subtracts",
    "multiplies",
    "divides",
    "takes a power",
    "a subtraction",
    "a division",
    "a remainder",
    "a shift",
    "a condition",
    "a number",
    "a list",
    "a tuple",
    "a dict",
    "a string",
    "perhaps {0}",
    "times",
    "percent",
    "rows wrong",
    "wrong on {0} of {1} cases",
    "wrong on {0} of {1} cases: {2}",
    "wrong on {0} of {1} cases; in the case shown: {2}",
    "in the case shown: {0}",
    "end",
    "beginning",
    "the values of each row",
    "the parts along axis 0",
    "the values along axis -1",
    "byte {0} differs, in {1}: {2} expected, {3} found",
    "byte {0} differs, in {1}",
    "byte {0} differs",
    "{0} (bytes {1} to {2})",
    "{0} expected, {1} found",
    "in {0}: the value differs",
    "in {0}: {1}",
    "In {0}, {1}",
    "all zeros",
    "every value is 0",
    "of {0} results, {1}",
    "{0} is wrong on {1}",
    "the first byte that is wrong is byte {0}",
    "counted from 0",
    "in all of them",
    "the function returns {0} on {1} of {2} inputs that must raise {3}",
    "No value is too large, and some are too small",
    "No value is too small, and some are too large",
    "Python raises {0} in line {1}, {2}",
    "Python raises {0} in line {1}, {2}: {3}",
    "Where the field {0} must stand, its number has {1} in place of {2}",
    "Bytes {0} to {1} are bytes {2} to {3} of the right one and bytes {4} to {5} are bytes {6} to {7} of the right one",
    "Every number is too small by {0}",
    "Every number is too large by {0}",
    "{0} times {1}",
    "The type of the results is right, and what is in them is not right: {0}",
    "The type is right, and what is in it is not right: {0}",
    "{0} in place of {1}",
    "The result is right, and the function changes its argument {0}",
    "In {0}, every wrong value is off by at most a millionth of the right one",
    "The result is too small by {0}",
    "The result is too large by {0}",
    "The result is {0}",
    "run on both wrong good inputs and on {0} of the {1} right ones",
    "runs on all {0} wrong cases and on none of the {1} right ones",
    "What is there is right, and some items are missing",
    "The right items are there, and others that do not belong there",
    "Bad input is refused with {0}, and {1} is asked for",
    "on 1",
    "on {0}",
    "a byte that is none",
    "or the right result is NaN",
    "where {0}, or {1}",
    "where {0}",
    "where there is {0}",
    "where there are {0}",
    "{0} has {1} or more",
    "{0} is {1} or more",
    "{0} is more than {1}",
    "{0} is less than {1}",
    "{0} is a number less than {1}",
    "{0} has a 0",
    "{0} is empty",
    "{0} has {1} bytes or more",
    "{0} has fewer than {1} bytes",
    "part along axis 0",
    "the parts along axis 0",
    "the values along axis 0",
    "the values along axis -1",
    "along axis 0",
    "along axis -1",
    "takes one number {0} of {1}: the {2}",
    "and the others are right",
    "{0} ({1} of {2}, cases and further inputs)",
    "Type and shape are right, and values are off by up to {0}",
    "Bad input is accepted: the function returns a result on {0} of {1} inputs that must raise {2}",
    "Every wrong value is off by at most a thousandth of the right one",
    "the solution refuses them with for example {0}",
    "the type differs: {0} in place of {1} on {2} of them",
    "the type of a part differs: {0} in place of {1} on at least {2} of them",
    "Found: it imports {0}",
    "it imports something other than print",
    "a mark lies where an opcode needs an item",
    "where an opcode is expected, there is a byte that is none",
    "{0}: another shape",
    "On bad input an operation in line {0}, {1} fails with {2}",
    "the width or the height is 0",
    "{0}, or {1}",
    "expected",
    "got",
    "also",
    "note",
    "goal",
    "next",
    "traceback",
    "hint 1",
    "the second part is no JSON",
    "the JSON in the second part is no list",
    "with a ValueError",
    "this input must be refused with a {0}",
    "{0} is not the bug of file {1}",
    "the element {0} differs (the first of {1} among {2})",
    "The worked answer is in the [solved lab](../solutions/{0}#{1})",
    "Solution",
    "One thing you may see",
    "Two things you may see",
    "Three things you may see",
    "Four things you may see",
    "Five things you may see",
    "Six things you may see",
    "Seven things you may see",
    "Eight things you may see",
    "Nine things you may see",
    "Ten things you may see",
    "Eleven things you may see",
    "Twelve things you may see",
    "{0} things you may see",
    "measured",
    "your guess",
    "{0}; of the inputs tried, exactly those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}; of the inputs tried, nearly all of those {1} are wrong, and no others ({2} of {3}, cases and further inputs)",
    "{0}; of the inputs tried, all but those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}; of the good inputs tried, exactly those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}; of the good inputs tried, nearly all of those {1} are wrong, and no others ({2} of {3}, cases "
    "and further inputs)",
    "{0}; of the good inputs tried, all but those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}; of the bad inputs tried, exactly those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}; of the bad inputs tried, nearly all of those {1} are wrong, and no others ({2} of {3}, cases "
    "and further inputs)",
    "{0}; of the bad inputs tried, all but those {1} are wrong ({2} of {3}, cases and further inputs)",
    "{0}, on all {1} cases",
    "{0}, on all {1} good inputs",
    "{0}, on all {1} bad inputs",
    "{0}, on the one case",
    "{0}, on the one good input",
    "{0}, on the one bad input",
    "{0}, on {1} of {2} cases",
    "{0}, on {1} of {2} good inputs",
    "{0}, on {1} of {2} bad inputs",
    "{0}, on at least {1} of the {2} wrong cases",
    "{0}, on at least {1} of the {2} wrong good inputs",
    "{0}, on at least {1} of the {2} wrong bad inputs",
    "on all {0} cases",
    "on all {0} good inputs",
    "on all {0} bad inputs",
    "on the one case",
    "on the one good input",
    "on the one bad input",
    "on at least {0} of the {1} wrong cases",
    "on at least {0} of the {1} wrong good inputs",
    "wrong cases",
    "wrong good inputs",
    "In the smallest of these cases, {0}",
    "this input must be refused with a {0}, and another error was raised",
    "this input must be refused with an {0}",
    "this input must be refused with an {0}, and another error was raised",
    "the solution refuses them with {0}",
    "the solution refuses one of them with {0}",
    "the solution refuses them with {0} or {1}",
    "one right answer refuses it with {0}",
    "one right answer refuses them with {0}",
    "one right answer refuses one of them with {0}",
    "your function refuses the call, and changes the old file",
    "after your function has ended, its hooks are still on the model",
    "Found: another mode than before",
    "Found: it imports {0}, on all {1} cases",
    "Only the value of {0} is wrong",
    "Only the value of {0} is wrong: {1}",
    "Only the values of {0} are wrong",
    "Only the first item is wrong, and the rest is right",
    "Only the last item is wrong, and the rest is right",
    "Only number {0} is wrong",
    "Only item {0} is wrong: {1}",
    "Only item {0} is wrong",
    "only the value of {0} is wrong",
    "only the value of {0} is wrong: {1}",
    "only the values of {0} are wrong",
    "only the first item is wrong, and the rest is right",
    "only the last item is wrong, and the rest is right",
    "only number {0} is wrong",
    "only item {0} is wrong: {1}",
    "only item {0} is wrong",
    "Only the last value is wrong",
    "Only the first value is wrong",
    "In every part that is wrong, {0}",
    "In every part that is wrong, only the first item is wrong, and the rest is right; the number of "
    "items is right in all of them, {0}",
    "In {0}, of the lengths, only that of the last axis is wrong",
    "of the lengths, only that of the last axis is wrong",
    "of the lengths, only that of the first axis is wrong",
    "The answer is {0} where {1} is right",
    "The answer is {0} where {1} or {2} is right",
    "The answer is {0} where {1} is right, and the answer is {2} where {3} is right",
    "the first byte that is wrong is byte {0}, counted from 0, in all of them",
    "the first byte that is wrong is byte {0}, counted from 0, in all of them, {1}",
    "the first item that is wrong is item {0}, counted from 0, in all of them",
    "the first item that is wrong is item {0}, counted from 0, in all of them, {1}",
    "the first item that is wrong is item {0}",
    "the first value that is wrong is value {0}, counted from 0, in all of them",
    "the first value that is wrong is value {0}, counted from 0, in all of them, {1}",
    "the first value that is wrong is value {0}",
    "The values are right, and the dtype is {0} in place of {1}",
    "The values are right, and the shape is different",
    "Keys are missing, and the other values are right",
    "What is there belongs there, and items are missing",
    "What is there is right, and some items are missing, {0}",
    "The values are wrong at exactly the keys that end with {0}, and the others are right",
    "There are {0} bytes too many",
    "There are {0} bytes too few",
    "Where the field {0} must stand, {1} bytes ({2}) are too many; without them, the bytes are the right ones",
    "The fields {0} and {1} are wrong, and the others are right",
    "All keys and values are right, in another order",
    "the JSON",
    "the padding",
    "Only the values are wrong; the scales are right",
    "the scales are right",
    "the integers are right, and some of them are multiplied by the scales that belong to others",
    "The absolute value of every result is right",
    "Each wrong value is too close to 0",
    "each wrong value is too far from 0",
    "Every value that is wrong has the other sign",
    "No value is too large, and some are too small, {0}",
    "No value is too small, and some are too large, {0}",
    "In {0}, every value is {1} times too small; the rest is right",
    "In {0}, every value is {1} times too large; the rest is right",
    "Every wrong value is item {0} of a part of the result",
    "Every wrong value is item {0} of item {1} of a part of the result",
    "In item {0}, {1}",
    "In line {0}, {1}",
    "In the length, {0}",
    "the value of item {0}",
    "In line {0}, parts that {1} joins are missing, and the others are right",
    "The result is right, and then comes {0}",
    "The result is right, and the function changes its argument {0}, {1}",
    "In all {0} cases with a wrong result, the function changes its argument {1}, too",
    "Line {0}, {1}, runs on all {2} wrong cases and on none of the {3} right ones",
    "Line {0}, {1}, runs on all {2} wrong cases and on {3} of the {4} right ones",
    "Line {0}, {1}, runs on both wrong cases and on {2} of the {3} right ones",
    "Line {0}, {1}, runs on both wrong cases and on none of the {2} right ones",
    "Line {0}, {1}, runs on all {2} wrong good inputs and on none of the {3} right ones",
    "Line {0}, {1}, runs on all {2} wrong good inputs and on {3} of the {4} right ones",
    "Line {0}, {1}, runs on both wrong good inputs and on {2} of the {3} right ones",
    "Line {0}, {1}, runs on both wrong good inputs and on none of the {2} right ones",
    "Lines {0} to {1}, from {2} on, run on all {3} wrong cases and on none of the {4} right ones",
    "Lines {0} to {1}, from {2} on, run on all {3} wrong cases and on {4} of the {5} right ones",
    "Lines {0} to {1}, from {2} on, run on both wrong cases and on {3} of the {4} right ones",
    "Lines {0} to {1}, from {2} on, run on both wrong cases and on none of the {3} right ones",
    "Lines {0} to {1}, from {2} on, run on all {3} wrong good inputs and on none of the {4} right ones",
    "Lines {0} to {1}, from {2} on, run on all {3} wrong good inputs and on {4} of the {5} right ones",
    "Lines {0} to {1}, from {2} on, run on both wrong good inputs and on {3} of the {4} right ones",
    "Lines {0} to {1}, from {2} on, run on both wrong good inputs and on none of the {3} right ones",
    "Line {0}, {1} and line {2}, {3}, run on all {4} wrong cases and on none of the {5} right ones",
    "Line {0}, {1} and line {2}, {3}, run on all {4} wrong cases and on {5} of the {6} right ones",
    "Line {0}, {1} and line {2}, {3}, run on both wrong cases and on {4} of the {5} right ones",
    "Line {0}, {1} and line {2}, {3}, run on both wrong cases and on none of the {4} right ones",
    "Line {0}, {1} and line {2}, {3}, run on all {4} wrong good inputs and on none of the {5} right ones",
    "Line {0}, {1} and line {2}, {3}, run on all {4} wrong good inputs and on {5} of the {6} right ones",
    "Line {0}, {1} and line {2}, {3}, run on both wrong good inputs and on {4} of the {5} right ones",
    "Line {0}, {1} and line {2}, {3}, run on both wrong good inputs and on none of the {4} right ones",
    "an error is raised",
    "With the values in reversed order in {0} and {1}, {2}",
    "With the values in reversed order in {0}, {1}",
    "Byte {0} is always {1}",
    "Byte {0} is always {1}, byte {2} is always {3}, byte {4} is always {5} and byte {6} is always {7}",
    "Bytes {0} to {1} are bytes {2} to {3} of the right one and bytes {4} to {5} are bytes {6} to {7} of "
    "the right one, {8}",
    "On {0}, the bytes cannot be loaded: {1}; on {2}, the bytes cannot be loaded: {3}, {4}",
    "twice {0}",
    "The result is too large by twice {0}, and too small by {1}",
    "{0} is not 0",
    "the sum of the other parts",
    "the bytes of the largest part",
    "the bytes of the first tensor",
    "the bytes of the storages of all tensors, each as often as it is used",
    "The result is the bytes of the storages of all tensors, each as often as it is used",
    "the number of groups of {0} in a row",
    "the number of groups of {0}",
    "Every number is too large by {0} divided by {1}, {2}",
    "Each value is the root of the sum of the squares of its row divided by {0}; the right one takes the "
    "largest absolute value of its row",
    "a solution that divides with `//` where the right one divides ({0})",
    "The last axis has {0} too few",
    "{0} has a row of zeros",
    "{0} has characters outside ASCII",
    "where {0} has {1} bytes or more",
    "With {0}, {1} is {2} in line {3}",
    "Python raises {0} in line {1}, {2}: {3}, on {4} of {5} cases",
    "byte {0} differs, in the scale of row {1}, group {2} (bytes {3} to {4}): {5} expected, {6} found",
    "byte {0} differs, in the scale of row {1} (bytes {2} to {3}): {4} expected, {5} found",
    "byte {0} differs, in the values of row {1}, group {2} (bytes {3} to {4}): {5} expected, {6} found",
    "byte {0} differs, in the values of row {1} (bytes {2} to {3}): {4} expected, {5} found",
    "byte {0} differs, in {1} (byte {2}): {3} expected, {4} found",
    "byte {0} differs, in descriptor of {1}: {2} (bytes {3} to {4}): {5} expected, {6} found",
    "the scale of a row is wrong on {0}",
    "the values of a row are wrong on {0}",
    "in {0}: the shape differs",
    "wrong on {0} of {1} cases: the shape differs",
    "wrong on {0} of {1} cases: in {2}: the shape differs",
    "at item {0}: the number of items differs: {1} expected, {2} found",
    "the keys differ: {0}, {1}, {2} and {3} more are missing",
    "the length: too small by a factor",
    "item {0}: nearly right",
    "On bad input an operation in line {0}, {1} fails with {2} ({3}); {4} is asked for, {5}",
    "Python raises {0} in line {1}, `{2}`: an index is outside the range: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: a number does not fit: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: `struct` refuses what it was given: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: too few values for the names on the left of `=`: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: too many values for the names on the left of `=`: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: an operation does not fit its values: {3}, on {4} of {5}",
    "Python raises {0} in line {1}, `{2}`: {3}, on {4} of {5} good inputs",
    "Python raises {0} in line {1}, `{2}`: {3}, on at least {4} of the {5} wrong cases",
    "Python raises {0} in line {1}, `{2}`: {3}, on at least {4} of the {5} wrong good inputs",
    "Python raises {0} in line {1}, `{2}`: {3}, on at least {4} of the {5} wrong good inputs. {6}",
    "Python raises {0} in line {1}, `{2}`: {3}, on {4} of {5} cases. {6}",
    "With one small change at {0}, your function is right on all {1} cases",
    "With one small change at {0}, your function is right on all {1} cases and on {2} further inputs",
    "With one small change before {0}, your function is right on all {1} cases",
    "With one small change before {0}, your function is right on all {1} cases and on {2} further inputs",
    "With one small change after {0}, your function is right on all {1} cases",
    "With one small change after {0}, your function is right on all {1} cases and on {2} further inputs",
    "Found: another mode than before, on all {0} cases",
    "Found: another mode than before, on {0} of {1} cases",
    "Found: it imports {0}, {1}, on all {2} cases",
    "Found: it imports {0}, {1}, {2}, on all {3} cases",
    "In item {0}, every wrong value is off by at most a millionth of the right one",
    "The result is the bytes of the storages of all tensors, each as often as it is used, {0}",
    "In line {0}, parts that {1} joins are missing, and the others are right, {2}",
    "The results are not the right ones; on {0} of {1} the type differs: {2} in place of {3} on {4} of "
    "them, on {5} of {6} good inputs",
    "the bits of one weight with its part of the scale",
    "The function refuses good input, with {0}: {1}, on {2} of {3} good inputs",
    "The function refuses good input, with {0}: {1}, on all {2} good inputs",
    "The function refuses good input, with {0}: {1}: `{2}` in line {3} is true there, {4}",
    "The function refuses good input, with {0}: `{1}` in line {2} is true there, {3}",
    "The errors are the largest signed differences, and a negative one is never that, however far it is from 0",
    "Python raises {0} in line {1}, `{2}`: an index is outside the range: {3}, on {4} of {5} cases. {6}",
    "Python raises {0} in line {1}, `{2}`: a number does not fit: {3}, on {4} of {5} cases. {6}",
    "Python raises {0} in line {1}, `{2}`: `struct` refuses what it was given: {3}, on {4} of {5} cases. {6}",
    "Python raises {0} in line {1}, `{2}`: too few values for the names on the left of `=`: {3}, on {4} "
    "of {5} cases. {6}",
    "Python raises {0} in line {1}, `{2}`: too many values for the names on the left of `=`: {3}, on {4} "
    "of {5} cases. {6}",
    "Python raises {0} in line {1}, `{2}`: for example, {3}, on {4} of {5} cases",
    "Python raises {0} in line {1}, `{2}`: for example, {3}, on {4} of {5} cases. {6}",
    "The function refuses good input, with {0}: {1}: `{2}` in line {3} is true there",
    "The function refuses good input, with {0}: `{1}` in line {2} is true there",
    "{0} / the bits of one weight with its part of the scale",
    "Every wrong value is item {0} of a part of the result, {1}",
    "Every wrong value is item {0} of item {1} of a part of the result, {2}",
    "the number of items is right in all of them; the first item that is wrong is item {0}, counted from "
    "0, in all of them, {1}",
    "the number of bytes is right in all of them; the first byte that is wrong is byte {0}, counted from "
    "0, in all of them, {1}",
    "only the first item is wrong",
    "only the last item is wrong",
    "{0} times the bytes of the largest part",
    "In item {0}, the result is {1} times the bytes of the largest part, divided by the sum of the other parts, {2}",
    "{0}, or the right result is NaN",
    "Where the field {0} must stand, {1} bytes ({2}) are too many; without them, the bytes are the right ones, {3}",
    "the values in reversed order in {0} and {1}",
    "the values in reversed order in {0}",
    "Each value is the root of the sum of the squares of its row divided by {0}; the right one takes the "
    "largest absolute value of its row, {1}",
    "the values of a row",
    "the scale of a row",
    "The answer is {0} where {1} is right, and the answer is {2} where {3} is right, {4}",
    "The last axis has 1 too few",
    "the bytes of the first {0}",
    "where the width or the height is 0",
)
LINK = re.compile(r"\]\(\.\./(\w+)/([^)#]*)")
OWN = language.FOLDER / NAME


# ---- what is to be translated ----------------------------------------------------------------------------------------


def sources(labs: Iterable[Path]) -> Iterator[tuple[Path, list[tuple[str, str]]]]:
    """Every catalogue's path and its messages, each with a remark for the translator."""
    for path in labs:
        yield SPANISH / "locale" / "notebooks" / f"{path.stem}.po", [(text, "") for text in of_notebook(path)]
    for page in PAGES:
        texts = collected(in_text, (ROOT / "book" / f"{page}.md").read_text("utf-8"))
        yield SPANISH / "locale" / "pages" / f"{page}.po", [(text, "") for text in texts]
    for subject, specs in by_subject().items():
        yield OWN / "lessons" / f"{subject}.po", [(text, "") for spec in specs for text in of_lesson(spec)]
    yield OWN / "course.po", [(text, "") for text in of_course()]
    yield OWN / "site.po", [(text, "") for text in of_site()]
    yield OWN / "engine.po", list(of_engine())


def of_notebook(path: Path) -> list[str]:
    """The blocks, comments and strings of a student notebook that stand in no lesson."""
    found: list[str] = []
    for cell in english(path).cells:
        if not cell.metadata.get("miniquant"):
            found += collected(in_code if cell.cell_type == "code" else in_text, without_time(cell.source))
        if image := cell.metadata.get("mystnb", {}).get("image"):
            found.append(image["alt"])
    return found


def collected(change: Callable[[str, Change], str], source: str) -> list[str]:
    """What ``in_text`` or ``in_code`` would translate of a source."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    change(source, keep)
    return found


@cache
def english(path: Path) -> NotebookNode:
    """The student notebook of a solved lab, in English and without outputs."""
    return student(solved(path))


def by_subject() -> dict[str, list[Exercise]]:
    """The exercises of parts 0 to III by the folder of their lessons."""
    found: dict[str, list[Exercise]] = {}
    for name in exercises():
        if exercises().lab_of(name) in LABS:
            found.setdefault(find(name).subject, []).append(find(name))
    return found


def of_lesson(spec: Exercise) -> Iterator[str]:
    """What a student reads of an exercise."""
    yield spec.goal
    yield from in_docstring(spec)
    yield from spec.hints
    yield spec.why
    for mistake in spec.mistakes:
        yield from (mistake.name, mistake.see, mistake.cause, mistake.cure)
    if spec.contest:
        yield spec.contest.what
    yield from phrases(spec)


def phrases(spec: Exercise) -> list[str]:
    """What a report may say of a case or a result: the words of its properties, quantities, factors and places."""
    found: dict[str, None] = {}
    for case in spec.all_cases():
        for maker in filter(None, (spec.traits, spec.quantities, spec.factors, spec.places)):
            try:
                named = maker(*case)
            except Exception:  # a maker speaks of good cases only
                continue
            for words, value in named.items():
                found |= {
                    text: None for text in (words, *(value if isinstance(value, dict) else ())) if " " in str(text)
                }
    return sorted(map(str, found))


def in_docstring(spec: Exercise) -> list[str]:
    """The paragraphs of the docstring of an exercise, as they stand in the source."""
    return [
        part for part in re.split(r"\n\s*\n", (spec.reference.__doc__ or "").strip()) if re.search("[a-z]{3}", part)
    ]


def of_course() -> Iterator[str]:
    """The titles of all parts and of the labs that are in Spanish, and what a student builds and leaves with."""
    table = tomllib.loads((ROOT / SOURCE).read_text("utf-8"))
    for part in read_course(ROOT):
        yield from (part.title, part.leave)
        for lab in part.labs:
            yield lab.title
            yield from (table["lab"][lab.subject]["build"], table["lab"][lab.subject]["leave"])


def of_site() -> list[str]:
    """The words of the interface of the site: what its pages are made with, and its scripts."""
    book = ROOT / "book"
    found = [text for path in sorted((book / "_ext").glob("*.py")) for text in of_page_maker(path)]
    scripts = [*sorted((book / "_static").glob("*.js")), *(book / "live" / f"{name}.js" for name in LIVE)]
    found += [text for path in scripts for text in of_script(path)]
    found += [text for path in (book / "live" / "shell.py", ROOT / "tools" / "live.py") for text in of_page_maker(path)]
    return list(dict.fromkeys((*found, *THEME)))


def of_engine() -> Iterator[tuple[str, str]]:
    """The sentences of the engine of the labs and of what it shows, and the strings of the lessons that it joins."""
    source = ROOT / "src" / "miniquant"
    unseen = tuple(str(source / place) for place in UNSEEN)
    paths = [path for place in ENGINE for path in modules(source / place) if not str(path).startswith(unseen)]
    known = set(JOINED)
    yield from ((text, "") for text in JOINED)
    for path in [*paths, *(source / place for place in AUTHORING)]:
        for text, fields in messages(path):
            if text not in known:
                known.add(text)
                yield text, " ".join(filter(None, (path.relative_to(source).as_posix(), fields)))


def modules(place: Path) -> list[Path]:
    """A module, or all modules of a folder."""
    return [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))


def updated(path: Path, found: list[tuple[str, str]]) -> Catalog:
    """The stored catalogue, brought up to date: a changed sentence is marked as fuzzy, one that is gone is dropped."""
    template = Catalog(fuzzy=False)
    for text, remark in found:
        if text.strip():
            template.add(text, auto_comments=[remark] if remark else [])
    catalog = stored(path)
    catalog.update(template, update_creation_date=False)
    catalog.obsolete.clear()
    return catalog


def stored(path: Path) -> Catalog:
    """A catalogue, or an empty one."""
    if not path.exists():
        return Catalog(locale=NAME, fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=NAME)


def write(path: Path, catalog: Catalog) -> None:
    """Store a catalogue; without dates, so that it changes with its sentences alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalog, width=0, omit_header=True)


# ---- the Spanish files -----------------------------------------------------------------------------------------------


def in_spanish(path: Path) -> NotebookNode:
    """The student notebook of a lab in Spanish, without outputs."""
    notebook = copy.deepcopy(english(path))
    own = words_of(SPANISH / "locale" / "notebooks" / f"{path.stem}.po")
    minutes = {name: find(name).minutes for name in exercises() if exercises().lab_of(name) == path.name[:2]}
    time = time_of(notebook.cells, minutes)
    with speaking(NAME):
        for number, cell in enumerate(notebook.cells):
            if mark := cell.metadata.get("miniquant"):
                cell.source = of_exercise(mark["part"], find(mark["exercise"]), cell.source, path.name)
            elif cell.cell_type == "code":
                cell.source = in_code(cell.source, own)
            else:
                cell.source = in_text(without_time(cell.source), own)
            if image := cell.metadata.get("mystnb", {}).get("image"):
                image["alt"] = own(image["alt"])
            cell.source = LINK.sub(_place, cell.source) if cell.cell_type == "markdown" else cell.source
            if number == 0:
                cell.source = with_time(cell.source, time)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.source = f'import os\n\nos.environ["{language.VARIABLE}"] = "{NAME}"\n\n{first.source}'
    return notebook


def _place(link: re.Match[str]) -> str:
    """The address of a link: what is not in Spanish lies one folder higher."""
    folder, name = link[1], link[2]
    here = (folder == "book" and name.partition(".")[0] in PAGES) or (folder == "notebooks" and name[:2] in LABS)
    return link[0] if here else f"](../../{folder}/{name}"


def of_exercise(part: str, spec: Exercise, source: str, notebook: str) -> str:
    """A cell of an exercise in the chosen language."""
    if part in ("goal", "help"):
        return source_of(part, spec, notebook)
    for paragraph in in_docstring(spec) if part == "stub" else ():
        here, there = (text.replace("\\", "\\\\") for text in (paragraph, translated(paragraph)))
        source = source.replace(here, there, 1)
    return source


def page_in_spanish(page: str) -> str:
    """A page of the site in Spanish."""
    text = (ROOT / "book" / f"{page}.md").read_text("utf-8")
    text = in_text(text, words_of(SPANISH / "locale" / "pages" / f"{page}.po"))
    text = re.sub(r"\]\((?!\.\./|https?:|#)([\w-]+)\.md", _beside, LINK.sub(_place, text))
    return re.sub(r"(?<=[< ])\.\./(?=formats/|readers/)", "../../", text)


def _beside(link: re.Match[str]) -> str:
    return link[0] if link[1] in PAGES else f"](../../book/{link[1]}.md"


def words_of(path: Path) -> dict[str, str]:
    """What a catalogue has, as a function from a message to its translation."""
    known = language.read_po(path) if path.exists() else {}
    return lambda text: known.get(text, text)  # type: ignore[return-value]


def untranslated(labs: list[Path]) -> list[str]:
    """The messages that have no translation, and the translations that have no message, a line each."""
    wrong = []
    for path, found in sources(labs):
        have = {str(message.id): message for message in stored(path) if message.id}
        for text in dict(found):
            message = have.pop(text, None)
            if text.strip() and (message is None or not message.string or message.fuzzy):
                wrong.append(f"{path.relative_to(ROOT)}: no translation of {text[:70]!r}; CONTRIBUTING.md says how")
        wrong += [f"{path.relative_to(ROOT)}: no source has {text[:70]!r} now" for text in have]
    return wrong


def differences(labs: list[Path]) -> list[str]:
    """Where a stored file is not what the sources give, a line each."""
    wrong = untranslated(labs)
    for path in labs:
        target = SPANISH / "notebooks" / path.name
        if not target.exists() or skeleton(nbformat.read(target, as_version=4)) != skeleton(in_spanish(path)):
            wrong.append(f"{target.relative_to(ROOT)} differs from its regeneration; run python tools/spanish.py")
    for page in PAGES:
        target = SPANISH / "book" / f"{page}.md"
        if not target.exists() or target.read_text("utf-8") != page_in_spanish(page):
            wrong.append(f"{target.relative_to(ROOT)} differs from its regeneration; run python tools/spanish.py")
    return wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extract", action="store_true", help="bring the catalogues up to date; write nothing else")
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    parser.add_argument("--keep-outputs", action="store_true", help="execute nothing; keep the stored outputs")
    parser.add_argument("labs", nargs="*", help="numbers such as 06; all of parts 0 to III by default")
    options = parser.parse_args()
    labs = [path for path in chosen(options.labs) if path.name[:2] in LABS]
    if options.extract:
        for path, found in sources(labs):
            write(path, updated(path, found))
        return 0
    if options.check:
        wrong = differences(labs)
        print("\n".join(wrong) or "everything in Spanish is what its sources give")
        return bool(wrong)
    os.environ["MINIQUANT_PROGRESS"] = os.devnull
    os.environ.pop("MPLBACKEND", None)
    for folder in ("book", "notebooks"):
        (SPANISH / folder).mkdir(exist_ok=True)
    for page in PAGES:
        (SPANISH / "book" / f"{page}.md").write_text(page_in_spanish(page), "utf-8")
    for path in tqdm(labs, desc="notebooks in Spanish", unit="lab"):
        target = SPANISH / "notebooks" / path.name
        run = with_stored_outputs if options.keep_outputs and target.exists() else execute
        nbformat.write(run(in_spanish(path), target), target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
