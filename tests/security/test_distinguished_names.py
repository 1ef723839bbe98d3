"""Names as Java 17's X500Principal writes them (security facts S18); each of these was compared with it."""

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from lamina.security.distinguished_names import MalformedName, distinguished_name

UTF8, IA5, BMP = _ASN1Type.UTF8String, _ASN1Type.IA5String, _ASN1Type.BMPString


def name(*parts: tuple[x509.ObjectIdentifier, str]) -> bytes:
    return x509.Name([x509.NameAttribute(kind, value, UTF8, _validate=False) for kind, value in parts]).public_bytes()


def test_the_last_part_comes_first_without_spaces() -> None:
    der = name(
        (NameOID.COUNTRY_NAME, "US"),
        (NameOID.STATE_OR_PROVINCE_NAME, "MD"),
        (NameOID.LOCALITY_NAME, "Fulton"),
        (NameOID.ORGANIZATION_NAME, "Acme, Ltd"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Team A"),
        (NameOID.COMMON_NAME, "alice"),
    )
    assert distinguished_name(der) == "CN=alice,OU=Team A,O=Acme\\, Ltd,L=Fulton,ST=MD,C=US"


def test_other_parts_that_have_short_names() -> None:
    der = name(
        (NameOID.USER_ID, "u1"),
        (NameOID.DOMAIN_COMPONENT, "org"),
        (NameOID.STREET_ADDRESS, "1 High Street"),
    )
    assert distinguished_name(der) == "STREET=1 High Street,DC=org,UID=u1"


def test_a_part_without_a_short_name_is_told_by_number_and_in_hexadecimal() -> None:
    der = x509.Name([x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b", IA5)]).public_bytes()
    assert distinguished_name(der) == "1.2.840.113549.1.9.1=#1603614062"
    assert distinguished_name(name((NameOID.SERIAL_NUMBER, "7"))) == "2.5.4.5=#0c0137"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('a=b+c<d>e#f;g"h\\i,j', r"a\=b\+c\<d\>e\#f\;g\"h\\i\,j"),
        (" a ", r"\ a\ "),
        ("\ra\r", "\\\ra\\\r"),
        ("a\0b", r"a\00b"),
        ("Zoë 漢", "Zoë 漢"),
        ("  ", r"\ \ "),
    ],
)
def test_what_is_escaped_in_a_value(value: str, written: str) -> None:
    assert distinguished_name(name((NameOID.COMMON_NAME, value))) == f"CN={written}"


def test_a_part_of_several_attributes_is_joined_by_plus() -> None:
    der = x509.Name(
        [
            x509.RelativeDistinguishedName(
                [
                    x509.NameAttribute(NameOID.COMMON_NAME, "a", UTF8),
                    x509.NameAttribute(NameOID.ORGANIZATION_NAME, "b", UTF8),
                ]
            )
        ]
    ).public_bytes()
    assert distinguished_name(der) == "CN=a+O=b"


def test_an_empty_name() -> None:
    assert distinguished_name(x509.Name([]).public_bytes()) == ""


def test_no_cut_or_changed_name_does_more_than_being_refused() -> None:
    der = name((NameOID.COMMON_NAME, "alice"), (NameOID.ORGANIZATION_NAME, "o" * 300))
    for length in range(len(der)):
        with pytest.raises(MalformedName):
            distinguished_name(der[:length])
    for at in range(len(der)):
        for byte in (0, 0x30, 0x7F, 0x80, 0x84, 0xFF):
            changed = der[:at] + bytes([byte]) + der[at + 1 :]
            try:
                distinguished_name(changed)
            except MalformedName as error:
                assert str(error)
