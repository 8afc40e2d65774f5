"""The WSGI entrance: serves everything but waiting."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fleet.settings.local")
application = get_wsgi_application()
