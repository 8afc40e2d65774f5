"""Addresses under ``/api/v1/``."""

from django.urls import path

from devices.api import devices, groups, tokens

urlpatterns = [
    path("devices/", devices.DeviceList.as_view(), name="device-list"),
    path("devices/<str:name>/", devices.DeviceOne.as_view(), name="device"),
    path("devices/<str:name>/reset-credential/", devices.DeviceReset.as_view(), name="device-reset"),
    path("groups/", groups.GroupList.as_view(), name="group-list"),
    path("groups/<str:name>/", groups.GroupOne.as_view(), name="group"),
    path("groups/<str:name>/devices/", groups.GroupMembers.as_view(), name="group-devices"),
    path("enrolment-tokens/", tokens.TokenList.as_view(), name="token-list"),
    path("enrolment-tokens/<str:name>/", tokens.TokenOne.as_view(), name="token"),
    path("enrolment-tokens/<str:name>/revoke/", tokens.TokenRevoke.as_view(), name="token-revoke"),
]
