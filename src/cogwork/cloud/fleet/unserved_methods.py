"""The methods of the fleet API that this cloud does not serve, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PEOPLE: Final = "this cloud knows people by their API keys; create a key with a role instead"
_BILLING: Final = "this cloud has no billing"
_BRANDING: Final = "this cloud has no pages of its own that could be branded"
_OAUTH: Final = "this cloud has no login for applications of others; use an API key"
_METADATA: Final = "this cloud does not keep data of clients beside the configuration"
_SHARING: Final = (
    "locations belong to one organization; create a key with a role on the location instead"
)
_FAVORITES: Final = "this cloud does not keep favorites; they would belong to a person"
_PHONES: Final = "this cloud does not send notifications to phones"
_LATER: Final = "this release does not have it yet"

UNSERVED_METHODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "CreateOrganizationInvite",
            "DeleteOrganizationInvite",
            "DeleteOrganizationMember",
            "GetUserIDByEmail",
            "ListOrganizationMembers",
            "ListOrganizationsByUser",
            "ResendOrganizationInvite",
            "UpdateOrganizationInviteAuthorizations",
        ),
        _PEOPLE,
    ),
    **dict.fromkeys(
        (
            "DisableBillingService",
            "EnableBillingService",
            "GetBillingServiceConfig",
            "GetRoverRentalRobots",
            "UpdateBillingService",
        ),
        _BILLING,
    ),
    **dict.fromkeys(
        (
            "GetAppBranding",
            "GetAppContent",
            "OrganizationGetLogo",
            "OrganizationGetSupportEmail",
            "OrganizationSetLogo",
            "OrganizationSetSupportEmail",
        ),
        _BRANDING,
    ),
    **dict.fromkeys(
        (
            "CreateOAuthApp",
            "CreateOAuthAppUser",
            "DeleteOAuthApp",
            "DisableAuthService",
            "EnableAuthService",
            "ListOAuthApps",
            "ReadOAuthApp",
            "UpdateOAuthApp",
        ),
        _OAUTH,
    ),
    **dict.fromkeys(
        (
            "GetLocationMetadata",
            "GetOrganizationMetadata",
            "GetRobotMetadata",
            "GetRobotPartMetadata",
            "SetConfigProperty",
            "UpdateLocationMetadata",
            "UpdateOrganizationMetadata",
            "UpdateRobotMetadata",
            "UpdateRobotPartMetadata",
        ),
        _METADATA,
    ),
    **dict.fromkeys(("ShareLocation", "UnshareLocation"), _SHARING),
    **dict.fromkeys(
        ("AddFavoriteMachine", "ListFavoriteMachines", "RemoveFavoriteMachine"), _FAVORITES
    ),
    **dict.fromkeys(
        (
            "DeleteDevicePushToken",
            "DeleteFirebaseConfig",
            "GetDevicePushTokens",
            "GetFirebaseConfig",
            "SetFirebaseConfig",
            "UploadDevicePushToken",
        ),
        _PHONES,
    ),
    **dict.fromkeys(
        (
            "CreateKeyFromExistingKeyAuthorizations",
            "DeleteOrganization",
            "GetOrganizationNamespaceAvailability",
            "ListMachineSummaries",
            "ListNestedFragments",
            "SearchOrganizations",
            "TransferRegistryItem",
            "UpdateOrganizationNamespace",
        ),
        _LATER,
    ),
}
"""The reasons by method name."""
