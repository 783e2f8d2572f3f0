"""`specbudget init`: a commented budget that passes the gate as it stands, from what is at hand."""
