-- The register of the audit's chains, which is a chain itself: the deletion of a whole chain is detected.
CREATE TABLE audit_chain (
  position bigint PRIMARY KEY,
  chain text COLLATE "C" NOT NULL UNIQUE,
  previous text NOT NULL,
  hash text NOT NULL
);

-- Registers the chains that exist. The hash is that of `store::chain`: SHA-256 over previous hash, name of the register,
-- position and chain, each after its length in eight bytes, the lowest first.
DO $$
DECLARE
  item record;
  part text;
  place bigint := 0;
  head text := repeat('0', 64);
  hashed bytea;
  next_head text;
BEGIN
  FOR item IN SELECT chain FROM audit WHERE audit.position = 1 ORDER BY number LOOP
    place := place + 1;
    hashed := '';
    FOREACH part IN ARRAY ARRAY[head, 'chains', place::text, item.chain] LOOP
      hashed := hashed || set_byte('\x0000000000000000'::bytea, 0, octet_length(part)) || convert_to(part, 'UTF8');
    END LOOP;
    next_head := encode(sha256(hashed), 'hex');
    INSERT INTO audit_chain (position, chain, previous, hash) VALUES (place, item.chain, head, next_head);
    head := next_head;
  END LOOP;
END
$$;
