"""``python -m fleet.ctl``."""

from fleet.ctl.main import main

if __name__ == "__main__":
    main()
