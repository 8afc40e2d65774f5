"""The pieces of :mod:`fleet.core.adminkit.show` for templates."""

from __future__ import annotations

from django import template

from fleet.core.adminkit import show

register = template.Library()

register.filter("moment", show.moment)
register.filter("lasting", show.lasting)
register.filter("exact", show.exact)
register.filter("span", show.took)
register.filter("chips", show.chips)
register.filter("names", show.names)
register.filter("count", show.plural)
register.simple_tag(show.icon, name="icon")
register.simple_tag(lambda: show.STAR, name="star")
