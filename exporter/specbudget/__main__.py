"""`python -m specbudget`."""

import sys

from specbudget.cli import main

sys.exit(main())
